"""The only place that loads the native module: the C++ core's bindings, and access to the probe in this process."""

from __future__ import annotations

from typing import Any

_module: Any = None


def native() -> Any:
    """The module `gpumemprof._native`. ImportError that says what to do if it was not built for this Python."""
    global _module
    if _module is None:
        try:
            from .. import _native
        except ImportError as error:
            raise ImportError(_what_to_do(error)) from None
        _module = _native
    return _module


def _what_to_do(error: ImportError) -> str:
    from pathlib import Path

    package = Path(__file__).resolve().parents[1]
    tree = package.parents[1]
    if (tree / "Makefile").is_file() and not any(package.glob("_native*.so")):
        return f"gpumemprof._native is not built: run `make` in {tree}"
    return (
        f"gpumemprof's native module cannot be loaded ({error}): install the package with pip, "
        "or run `make` in the source tree with this Python in .venv"
    )
