"""tfmemprof.attach(): exact counting in a process that was not started by `tfmemprof run`."""

from __future__ import annotations

import os

from gpumemprof._recorded import attachment as _attachment


def attach(output: str | os.PathLike[str] | None = None, *, flags: int = 0) -> None:
    """Counts every allocation and free of TensorFlow in this process from now on, without preloading.

    Call it after `import tensorflow`. With `output`, a folder, the process also records into it as under `tfmemprof
    run`. Existing profilers and trackers use the exact figures too, once one tensor's allocation was seen. Blocks
    allocated earlier are in no figure; their frees are counted. This is gpumemprof.attach(), which also counts
    PyTorch's allocations in the same process.

    Raises RuntimeError with the reason if attaching is impossible, FileNotFoundError if the probe library is not
    installed.
    """
    _attachment.attach(output, flags=flags)
