"""gpumemprof.attach(): exact counting in a process that was not started by `gpumemprof run`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

from .._counting import counters
from .._counting.attaching import attach_probe
from . import standing

_NO_ATTRIBUTION = 64  # GPUMEMPROF_ATTACH_NO_ATTRIBUTION


def _arming() -> ModuleType:
    """What arms this process: that of `gpumemprof run`, where it is here, so that nothing is armed twice."""
    if "_gpumemprof_recorded" in sys.modules:
        return import_module("_gpumemprof_recorded._recorded.standing")
    return standing


def attach(output: str | os.PathLike[str] | None = None, *, flags: int = 0) -> None:
    """Counts every allocation and free of PyTorch in this process from now on, without preloading.

    Call it after `import torch`, and again after loading libraries that call the allocator themselves. With `output`, a
    folder, the process also records into it as under `gpumemprof run`; a second folder is an error. `flags` are
    GPUMEMPROF_ATTACH_* of the C API. Existing profilers use the exact figures too. Blocks allocated earlier are in no
    figure; their frees are counted. Under `gpumemprof run` it only begins counting. From now on an uncaught
    out-of-memory exception writes a bundle (see OOMFlightRecorder).

    Raises RuntimeError with the reason if attaching is impossible, FileNotFoundError if the probe library is not
    installed.
    """
    folder = None if output is None else os.path.abspath(os.fspath(output))
    attach_probe(folder, flags)
    counters.source_changed()
    _arming().arm(folder, attribution=not flags & _NO_ATTRIBUTION)
