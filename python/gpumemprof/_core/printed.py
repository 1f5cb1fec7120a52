"""Size formatting, and dictionaries and results that print as a few lines."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any


_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def format_bytes(size_bytes: float, precision: int = 2) -> str:
    """"1.25 GB": in units of 1024, printed with the short names KB, MB, GB. Negative sizes are scaled too."""
    value, sign = abs(size_bytes), "-" if size_bytes < 0 else ""
    unit = 0
    # What would print as 1024 of a unit is 1 of the next.
    while unit + 1 < len(_UNITS) and round(value, precision) >= 1024:
        value /= 1024
        unit += 1
    return f"{sign}{value:.0f} B" if unit == 0 else f"{sign}{value:.{precision}f} {_UNITS[unit]}"


def format_size(size_bytes: float) -> str:
    """Binary units, three figures: `64.0 MiB`, `-1.50 GiB`, `512 B`."""
    value, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1023.5 and len(units) > 1:
        value, units = value / 1024, units[1:]
    if units[0] == "B":
        return f"{value:.0f} B"
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {units[0]}"


def size_words(size_bytes: float | None) -> str:
    return "not known" if size_bytes is None else format_size(size_bytes)


def convert_bytes(value: float, from_unit: str, to_unit: str) -> float:
    """`value` in one of B, KB, MB, GB, TB, PB, each 1024 times the one before. Raises ValueError for any other unit, TypeError for what is no number."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"value must be a number, not {type(value).__name__}")
    powers = []
    for unit in (from_unit, to_unit):
        if unit.upper() not in _UNITS:
            raise ValueError(f"Unknown unit: {unit} (there are {', '.join(_UNITS)})")
        powers.append(_UNITS.index(unit.upper()))
    difference = powers[0] - powers[1]
    return float(value * 1024**difference) if difference >= 0 else value / 1024**-difference


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Names and texts, a line each; a row without a text is left out."""
    shown = [(name, text) for name, text in rows if text]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in shown)


class Printed(dict[str, Any]):
    """A dict whose `str` is `rows()`; its `repr` is a dict's."""

    def rows(self) -> Iterable[tuple[str, str]]:
        """Name and text of each line."""
        return [(name, str(value)) for name, value in self.items()]

    def __str__(self) -> str:
        return table(self.rows())
