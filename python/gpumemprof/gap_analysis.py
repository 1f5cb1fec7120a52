"""The gap: a device's used bytes less what this process's allocator reserved."""

from ._analysis.gaps import GapFinding as GapFinding
from ._analysis.gaps import LEAST_OFFSET_SHARE as LEAST_OFFSET_SHARE
from ._analysis.gaps import LEAST_SAMPLES as LEAST_SAMPLES
from ._analysis.gaps import LEAST_SHARE_OF_DEVICE as LEAST_SHARE_OF_DEVICE
from ._analysis.gaps import LEAST_SPLIT_SHARE as LEAST_SPLIT_SHARE
from ._analysis.gaps import analyze_gaps as analyze_gaps
