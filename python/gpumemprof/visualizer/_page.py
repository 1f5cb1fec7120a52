"""Measurements as a report on the command's page, in one file that needs no network."""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

from .._analysis.measured import COLUMN_WORDS, Call, Measured
from .._core.printed import format_size, size_words
from .._core.columns import side_by_side
from .._core.native import native
from .._core.page import framed
from ._functions import METRICS, rows_of
from ._heatmap import grid_of
from ._style import capital, column_words, peak_of, peak_words, start_of, subtitle

MOST_POINTS = 4000
MOST_CALLS = 200  # of one function in its table: the page is for looking, export_data is for all
Json = dict[str, Any]


class Page:
    """A report as data, `document`, and as the page that shows it. In a notebook it shows itself."""

    def __init__(self, document: Json) -> None:
        self.document = document

    def html(self) -> str:
        """One file with everything in it."""
        header = json.dumps(run_answer(self.document) | {"columns": {}}).encode()
        answer = b"GMPC" + struct.pack("<I", len(header)) + header + b"\0" * (-(8 + len(header)) % 8)
        packed = zlib.compressobj(wbits=-15)
        carried = {"run": base64.b64encode(packed.compress(answer) + packed.flush()).decode()}
        return page_with("gpumemprof-data", {"answers": carried})

    def save(self, path: Any) -> None:
        target = Path(os.fspath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.html(), encoding="utf-8")

    def show(self) -> None:
        """A browser's tab, of a file that stays until the system clears its temporary folder."""
        import tempfile
        import webbrowser

        with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False, encoding="utf-8") as file:
            file.write(self.html())
        webbrowser.open(f"file://{file.name}")

    def _repr_html_(self) -> str:
        return framed(self.html())


def page_with(element: str, data: Any) -> str:
    """The command's page with data that its script looks for: text, never markup."""
    text = json.dumps(data).replace("<", "\\u003c")
    found: str = native().page_with(f'<script type="application/json" id="{element}">{text}</script>')
    return found


def run_answer(document: Json, refresh_s: float | None = None) -> Json:
    """What the page begins with (docs/page-data.md): one file without events. `refresh_s`: when to ask again."""
    none: Json = dict.fromkeys(("devices", "processes", "streams", "categories", "threads", "unknown"), [])
    file: Json = {"name": document["title"], "kind": "samples", "state": "ready", **none, "document": document}
    answer: Json = {"schema": "gpumemprof-page/1", "files": [file]}
    return answer if refresh_s is None else answer | {"refresh_ms": max(50, round(refresh_s * 1000))}


def whole(measured: Measured) -> Json:
    """Timeline, functions with their calls, memory by function over time."""
    if measured.empty:
        return _document("Memory", [_section("", [_sentence(measured.unknown or "nothing yet")])])
    sections = [timeline(measured)["sections"][0]]
    if measured.functions:
        sections += functions(measured, "peak_memory")["sections"]
    elif measured.sampled or len(measured.series):
        sections.append(_section("Functions", [_sentence("no functions were profiled")]))
    if len(measured.calls) > 1:
        sections += heatmap(measured)["sections"]
    return _document(capital(measured.memory_words()), sections)


def timeline(measured: Measured) -> Json:
    start_s = start_of(measured)
    lines = []
    for column in COLUMN_WORDS:
        times, values = thinned(*measured.series.known(column))
        if values:
            lines.append(_line(column_words(measured, column), [t - start_s for t in times], values))
    if calls := [call for call in measured.calls if call.peak_bytes is not None]:
        lines.append(_call_line(calls, start_s))
    title = f"{capital(measured.memory_words())} over time"
    chart = {"kind": "chart", "title": title, "limit_bytes": measured.limit_bytes, "lines": lines}
    peak = peak_of(measured)
    words = [_sentence(peak_words(peak, start_s), "headline")] if peak else []
    return _document(title, [_section("", [*words, _sentence(facts(measured), "dim"), chart])])


def functions(measured: Measured, metric: str) -> Json:
    """Highest first by a metric; a row opens to the function's calls. ValueError as rows_of()."""
    shown = rows_of(measured, metric)
    highest = max((abs(row.value) for row in shown), default=0) or 1
    titles = ["function", "calls", "peak", "allocated", "kept", "time", METRICS[metric].lower()]
    columns = [{"title": title, "is_number": i > 0} for i, title in enumerate(titles)]
    rows = []
    for row in shown:
        function = measured.functions[row.name]
        calls = [call for call in measured.calls if call.name == row.name]
        sizes = (function.peak_bytes, function.allocated_bytes, measured.kept_by(row.name))
        figures = [str(function.call_count), *map(size_words, sizes), f"{function.total_time_s:.4g} s", row.label]
        cells = [{"text": row.name, "is_code": True}, *({"text": text} for text in figures)]
        details = [_calls_table(calls)] if calls else []
        rows.append({"cells": cells, "share": abs(row.value) / highest, "details": details})
    left_out = len(measured.functions) - len(rows)
    more = f"and {left_out} more functions" if left_out else ""
    table = {"kind": "table", "columns": columns, "rows": rows, "left_out_text": more}
    return _document(METRICS[metric], [_section(METRICS[metric], [table])])


def heatmap(measured: Measured) -> Json:
    """A line a function, or a kind of memory: its highest in each slice of time."""
    grid = grid_of(measured)
    middles = [(a + b) / 2 for a, b in zip(grid.edges_s, grid.edges_s[1:])]
    lines = [
        _line(name, middles, [None if isnan(cell) else cell for cell in cells])
        for name, cells in side_by_side(grid.rows, grid.cells)
    ]
    what = "Peak memory of functions over time" if measured.calls else f"{capital(measured.memory_words())} over time"
    return _document(what, [_section(what, [{"kind": "chart", "title": what, "limit_bytes": None, "lines": lines}])])


def facts(measured: Measured) -> str:
    calls = sum(function.call_count for function in measured.functions.values())
    words = [subtitle(measured)]
    if calls:
        words.append(f"{calls} calls of {len(measured.functions)} functions")
    if len(measured.series):
        words.append(f"{len(measured.series)} samples")
    if measured.limit_bytes:
        words.append(f"limit {format_size(measured.limit_bytes)}")
    return " · ".join(words)


def thinned(times: list[float], values: list[float]) -> tuple[list[float], list[float]]:
    """As they are, or the lowest and highest of equal groups: a page that is sent every second must stay small, and
    no peak may be lost."""
    group = -(-2 * len(values) // MOST_POINTS)
    if group <= 1:
        return times, values
    kept: list[int] = []
    for start in range(0, len(values), group):
        places = range(start, min(start + group, len(values)))
        kept += sorted({min(places, key=values.__getitem__), max(places, key=values.__getitem__)})
    return [times[i] for i in kept], [values[i] for i in kept]


def _call_line(calls: list[Call], start_s: float) -> Json:
    """As high as its peak while a call runs; of very many the highest."""
    highest = sorted(calls, key=lambda call: -(call.peak_bytes or 0))[: MOST_POINTS // 4]
    times: list[float] = []
    values: list[float | None] = []
    for call in sorted(highest, key=lambda call: call.start_s):
        times += [call.start_s - start_s, call.end_s - start_s, call.end_s - start_s]
        values += [call.peak_bytes, call.peak_bytes, None]
    left_out = f", the highest {len(highest)} of {len(calls)}" if len(highest) < len(calls) else ""
    return _line(f"calls, as high as their peak{left_out}", times, values)


def _calls_table(calls: list[Call]) -> Json:
    titles = ["call", "peak", "over its start", "kept", "seconds"]
    rows = []
    for number, call in list(enumerate(calls, 1))[-MOST_CALLS:]:
        sizes = [size_words(size) for size in (call.peak_bytes, call.peak_over_start_bytes, call.kept_bytes)]
        rows.append({"cells": [{"text": text} for text in (str(number), *sizes, f"{call.duration_s:.4g}")]})
    left_out = f"and {len(calls) - MOST_CALLS} earlier calls" if len(calls) > MOST_CALLS else ""
    columns = [{"title": title, "is_number": True} for title in titles]
    return {"kind": "table", "columns": columns, "rows": rows, "left_out_text": left_out}


def _line(name: str, times_s: Sequence[float], values: Sequence[float | None]) -> Json:
    return {"name": name, "times_s": list(times_s), "bytes": list(values)}


def _sentence(text: str, tone: str = "plain") -> Json:
    return {"kind": "sentence", "text": text, "tone": tone, "label": ""}


def _section(title: str, parts: list[Json]) -> Json:
    return {"title": title, "is_folded": False, "parts": parts}


def _document(title: str, sections: list[Json]) -> Json:
    return {"title": title, "sections": sections}
