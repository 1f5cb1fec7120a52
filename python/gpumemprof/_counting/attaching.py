"""The probe in a process that was not started by `gpumemprof run`: finding its library and attaching it, also
automatically when a figure is requested."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .._core.native import native

PROBE_NAME = "libgpumemprof_probe.so"
NO_ATTACH = "GPUMEMPROF_NO_ATTACH"

_why_not: str | None = None  # of the one try; "" where it is attached


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
        raise FileNotFoundError(f"{named}: no such library (set by GPUMEMPROF_PROBE)")
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


def attach_probe(output: str | None = None, flags: int = 0) -> None:
    """Begins counting, and with a folder recording. RuntimeError that says why where it cannot be done,
    FileNotFoundError where the library is not installed."""
    module = native()
    library = module.probe_library() or str(find_probe())
    try:
        module.attach(library, output, flags)
    except (OSError, ValueError) as error:
        raise RuntimeError(f"cannot attach: {error}") from error


def attach_by_itself() -> str:
    """Attaches where PyTorch is imported and nobody forbids it by GPUMEMPROF_NO_ATTACH; tried once a process. Nothing is
    recorded, only counted. "" where the probe is in this process then, else why not."""
    global _why_not
    if os.environ.get(NO_ATTACH):
        return f"{NO_ATTACH} is set"
    if "torch" not in sys.modules:
        return "PyTorch was not imported yet"
    if _why_not is None:
        _why_not = ""  # before: attaching may ask for figures
        try:
            attach_probe()
        except (RuntimeError, OSError, ImportError) as error:
            _why_not = str(error)
    return _why_not
