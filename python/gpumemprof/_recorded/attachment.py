"""gpumemprof.attach(): exact counting in a process that was not started by `gpumemprof run`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from .._core.native import native
from .._counting import counters
from . import standing

PROBE_NAME = "libgpumemprof_probe.so"
_NO_ATTRIBUTION = 64  # GPUMEMPROF_ATTACH_NO_ATTRIBUTION


def find_probe() -> Path:
    """The probe library: GPUMEMPROF_PROBE's, the one installed with this package, or the one in the virtual
    environment.

    FileNotFoundError that names where it was looked for.
    """
    named = os.environ.get("GPUMEMPROF_PROBE")
    if named:
        path = Path(named)
        if path.is_file():
            return path.resolve()
        raise FileNotFoundError(f"{named}: no such library, though GPUMEMPROF_PROBE names it")
    # A wheel puts it in lib/gpumemprof below the prefix that its packages are in: that of the interpreter, of a --user
    # installation, or of a --target folder.
    package = Path(__file__).resolve().parents[1]
    folders = [Path(sys.prefix, "lib", "gpumemprof"), Path(sys.prefix, "lib")]
    folders += [parent / "lib" / "gpumemprof" for parent in list(package.parents)[:5]]
    for folder in folders:
        path = folder / PROBE_NAME
        if path.is_file():
            return path
    where = f"{folders[0]} or {folders[1]}"
    raise FileNotFoundError(f"{PROBE_NAME} is not in {where}: install gpumemprof again, or run `make`")


def _arming() -> ModuleType:
    """What arms this process: that of `gpumemprof run`, where it is here, so that nothing is armed twice."""
    if "_gpumemprof_recorded" in sys.modules:
        return import_module("_gpumemprof_recorded._recorded.standing")
    return standing


def attach(output: str | os.PathLike[str] | None = None, *, flags: int = 0) -> None:
    """Counts every allocation and free of PyTorch in this process from now on, without preloading anything.

    Call it after `import torch`, and again after loading libraries that call the allocator themselves. With `output`, a
    folder, the process records into it as under `gpumemprof run`, and a second folder is an error; `flags` are GPUMEMPROF_ATTACH_* of the C API.
    Profilers that exist already use the exact figures too. Blocks that are older are not in any figure; that they
    were freed is counted. Under `gpumemprof run` it only begins counting. From now on an out-of-memory exception that
    nobody catches leaves a bundle (OOMFlightRecorder says what is in it).

    RuntimeError that says why where it cannot be done, FileNotFoundError where the probe library is not installed.
    """
    module = native()
    library = module.probe_library() or str(find_probe())
    folder = None if output is None else os.path.abspath(os.fspath(output))
    try:
        module.attach(library, folder, flags)
    except (OSError, ValueError) as error:
        raise RuntimeError(f"cannot attach: {error}") from error
    counters.source_changed()
    _arming().arm(folder, attribution=not flags & _NO_ATTRIBUTION)
