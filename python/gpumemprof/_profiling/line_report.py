"""The report of lines, as text."""

from __future__ import annotations

import inspect
import linecache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lines import FunctionLines, LineRecord

_WIDTH = 15


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.3f}"


def _cells(record: LineRecord | None, devices: list[str]) -> str:
    if record is None:
        return " " * (8 + 2 * (_WIDTH + 1) * len(devices))
    cells = f"{record.hits:>8}"
    for device in devices:
        figures = record.devices.get(device)
        if figures is None:
            cells += " " * (2 * (_WIDTH + 1))
            continue
        bound = "" if figures.peak_is_exact else ">="
        cells += f" {_mib(figures.change_bytes):>{_WIDTH}} {bound + _mib(figures.peak_rise_bytes):>{_WIDTH}}"
    return cells


def _source_lines(function: FunctionLines) -> dict[int, str]:
    """The function's lines by number; those that ran where its source is not there."""
    linecache.checkcache(function.filename)
    lines = linecache.getlines(function.filename)
    try:
        block = inspect.getblock(lines[function.first_line - 1 :])
    except (IndexError, SyntaxError):
        block = []
    numbered = {function.first_line + n: text.rstrip("\n") for n, text in enumerate(block)}
    return numbered or {number: "" for number in sorted(function.lines)}


def report(functions: list[FunctionLines]) -> str:
    """A table a function. Change is added up over all hits; peak is the highest rise of one hit; both in MiB."""
    parts = []
    for function in functions:
        devices = list(function.basis)
        basis = ", ".join(f"{device}: {basis}" for device, basis in function.basis.items())
        head = f"{'Line':>6} {'Hits':>8}"
        for device in devices:
            head += f" {device + ' +MiB':>{_WIDTH}} {device + ' peak MiB':>{_WIDTH}}"
        rows = [f"{function.filename}:{function.first_line} {function.name} ({basis})"]
        rows += [f"  {source}: {why}" for source, why in function.why_inexact.items()]
        rows.append(head + "  Source")
        for number, text in _source_lines(function).items():
            rows.append(f"{number:>6} {_cells(function.lines.get(number), devices)}  {text}".rstrip())
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)
