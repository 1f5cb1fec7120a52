"""gpumemprof.attach(): exact counting in a process that was not started by `gpumemprof run`."""

from ._counting.attaching import PROBE_NAME as PROBE_NAME
from ._recorded.attachment import attach as attach
from ._counting.attaching import find_probe as find_probe
