"""The source of figures, decided in one place."""

from typing import Any

from ._counting import counters as _counters
from ._counting.counters import *


def __getattr__(name: str) -> Any:
    if name == "generation":  # it counts up
        return _counters.generation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
