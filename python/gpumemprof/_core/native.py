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
            raise ImportError(
                f"gpumemprof's native module cannot be loaded ({error}): install the package with pip, "
                "or run `make` in the source tree with this Python in .venv"
            ) from error
        _module = _native
    return _module
