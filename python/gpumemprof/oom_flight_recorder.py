"""Writes a bundle of files when memory runs out."""

from ._oom.recorder import OOMExceptionClassification as OOMExceptionClassification
from ._oom.recorder import OOMFlightRecorder as OOMFlightRecorder
from ._oom.recorder import OOMFlightRecorderConfig as OOMFlightRecorderConfig
from ._oom.recorder import classify_oom_exception as classify_oom_exception
from ._oom.recorder import read_bundle as read_bundle
from ._oom.recorder import standing_recorder as standing_recorder
from ._oom.recorder import watch_uncaught_oom as watch_uncaught_oom
