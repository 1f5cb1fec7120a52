"""tfmemprof.attach(): exact counting in a process that was not started by `tfmemprof run`."""

from __future__ import annotations

import os

from gpumemprof._recorded import attachment as _attachment


def attach(output: str | os.PathLike[str] | None = None, *, flags: int = 0) -> None:
    """Counts every allocation and free of TensorFlow in this process from now on, without preloading anything.

    Call it after `import tensorflow`. With `output`, a folder, the process records into it as under `tfmemprof run`.
    Profilers and trackers that exist already use the exact figures too, once one tensor was seen to arrive; blocks that
    are older are not in any rise, and that they were freed is counted. It is gpumemprof.attach(), which counts
    PyTorch's allocations in the same process as well.

    RuntimeError that says why where it cannot be done, FileNotFoundError where the probe library is not installed.
    """
    _attachment.attach(output, flags=flags)
