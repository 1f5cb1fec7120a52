"""Rows as a table for people, as CSV, or as JSON."""

from __future__ import annotations

import csv
import decimal
import itertools
import json
import math
from typing import TYPE_CHECKING, Any, TextIO

from ..told import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

_SAMPLE_ROWS, _MOST_WIDTH = 500, 80


def write(names: list[str], rows: Iterable[tuple[Any, ...]], form: str, out: TextIO) -> None:
    names = _unique(names)
    if form == "csv":
        _write_csv(names, rows, out)
    elif form == "json":
        _write_json(names, rows, out)
    elif names:
        _write_table(names, rows, out)


def _unique(names: list[str]) -> list[str]:
    """Two columns of one name would be one member of a JSON object."""
    taken: list[str] = []
    for name in names:
        number, one = 1, name
        while one in taken:
            number += 1
            one = f"{name}_{number}"
        taken.append(one)
    return taken


def _plain_value(value: Any) -> Any:
    """As JSON has it: exact whole numbers, no NaN."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (list, tuple)):
        return [_plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain_value(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _write_json(names: list[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    before = "["
    for row in rows:
        out.write(before + "\n" + json.dumps({name: _plain_value(value) for name, value in zip(names, row)}))
        before = ","
    out.write("[]\n" if before == "[" else "\n]\n")


def _write_csv(names: list[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> Any:
    """A spreadsheet takes text that begins with one of these for a formula, which names of files could be."""
    value = _plain_value(value)
    if isinstance(value, (list, dict)):
        value = json.dumps(value)
    return "'" + value if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _shown(value: Any) -> str:
    value = _plain_value(value)
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = plain(json.dumps(value) if isinstance(value, (list, dict)) else str(value))
    return text if len(text) <= _MOST_WIDTH else "…" + text[1 - _MOST_WIDTH :]


def _write_table(names: list[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    """Widths are those of the first rows: the rest is written as it comes."""
    if names == ["explain_key", "explain_value"]:  # DuckDB's own picture
        for row in rows:
            out.write("\n".join(plain(line) for line in str(row[1]).splitlines()) + "\n")
        return
    rows = iter(rows)
    first = list(itertools.islice(rows, _SAMPLE_ROWS))
    widths = [len(plain(name)) for name in names]
    is_number = [all(isinstance(row[i], (int, float, decimal.Decimal, type(None))) for row in first) for i in range(len(names))]
    for row in first:
        widths = [max(width, len(_shown(value))) for width, value in zip(widths, row)]

    def line(cells: list[str]) -> str:
        parts = [cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(cells, widths, is_number)]
        return "  ".join(parts).rstrip() + "\n"

    out.write(line([plain(name) for name in names]))
    out.write(line(["-" * width for width in widths]))
    count = 0
    for some in (first, rows):
        for row in some:
            out.write(line([_shown(value) for value in row]))
            count += 1
    out.write(f"({count} row{'' if count == 1 else 's'})\n")
