"""Jupyter: `%load_ext gpumemprof.notebook`, then `%%gpumemprof` above a cell or `%gpumemprof EXPRESSION`."""

from __future__ import annotations

from html import escape
from typing import Any

from .._analysis.inputs import collect
from .._analysis.measured import Call
from .._core.printed import format_size, size_words

_CELL = "text-align:right;padding:2px 12px"


class CellReport:
    """The memory of one cell as text, and as a table in a notebook. `result` is its ProfileResult."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __repr__(self) -> str:
        return text_of(collect([self.result]).calls[0])

    def _repr_html_(self) -> str:
        return html_of(self.result)


def text_of(call: Call) -> str:
    """One line: `cell: peak 65.0 MiB (+64.0 MiB), kept 1.00 MiB, 0.12 s; exact`."""
    rise, kept = call.peak_over_start_bytes, call.kept_bytes
    words = [f"{'peak' if call.peak_is_exact else 'peak at least'} {size_words(call.peak_bytes)}"]
    words[0] += f" (+{format_size(rise)})" if rise is not None else ""
    words.append(f"kept {format_size(kept)}" if kept is not None else "kept: not known")
    words.append(f"{call.duration_s:.3g} s")
    return f"{call.name}: {', '.join(words)}; {call.basis or 'basis not known'}"


def html_of(source: Any) -> str:
    """A table of a profiler, results, a tracker, events or a file: one row per function, or for the samples."""
    measured = collect(source)
    if measured.empty:
        return f"<i>{escape(measured.unknown)}</i>"
    rows = [[f.name, str(f.call_count), size_words(f.peak_over_start_bytes), size_words(f.peak_bytes),
             size_words(measured.kept_by(f.name)), f"{f.total_time_s:.3g} s"]
            for f in measured.functions.values()]  # fmt: skip
    head = ["function", "calls", "peak over the start", "peak", "kept", "time"]
    if not rows:
        head, rows = ["memory", "first", "highest sample", "last"], [
            [name, size_words(values[0]), size_words(max(values)), size_words(values[-1])]
            for name in measured.series.columns if (values := measured.series.known(name)[1])
        ]  # fmt: skip
    caption = f"{measured.memory_words()}; {measured.basis_words() or 'basis not known'}"
    table = "".join(f"<tr>{''.join(f'<td style={_CELL!r}>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    heads = "".join(f"<th style={_CELL!r}>{escape(one)}</th>" for one in head)
    return f"<table><caption>{escape(caption)}</caption><tr>{heads}</tr>{table}</table>"


def load_ipython_extension(ipython: Any) -> None:
    """Registers the magic and the tables of results, profilers and trackers."""
    ipython.register_magic_function(_magic(ipython), "line_cell", "gpumemprof")
    formatter = ipython.display_formatter.formatters["text/html"]
    for module, name in (
        ("_profiling.results", "ProfileResult"),
        ("_profiling.profiler", "GPUMemoryProfiler"),
        ("_tracking.tracker", "MemoryTracker"),
    ):
        formatter.for_type_by_name(f"gpumemprof.{module}", name, html_of)


def unload_ipython_extension(ipython: Any) -> None:
    ipython.magics_manager.magics["line"].pop("gpumemprof", None)
    ipython.magics_manager.magics["cell"].pop("gpumemprof", None)


def _magic(ipython: Any) -> Any:
    def gpumemprof(line: str, cell: str | None = None) -> CellReport:
        """%%gpumemprof [NAME] [--device DEVICE]: profiles the cell. %gpumemprof STATEMENT: profiles one line.

        The report is the last value (`_`); the cell's own last value is shown above it. What the cell raises is
        raised, with its memory printed before."""
        from .profiler import GPUMemoryProfiler

        words = line.split() if cell is not None else []
        device = None
        if "--device" in words:
            place = words.index("--device")
            if place + 1 == len(words):
                raise ValueError("--device needs a device: cpu, cuda, cuda:0")
            device = words[place + 1]
            del words[place : place + 2]
        steps = _compiled(ipython, line if cell is None else cell)
        profiler = GPUMemoryProfiler(device)
        value = None
        try:
            with profiler.profile_context(" ".join(words) or "cell"):
                for kind, code in steps:
                    value = eval(code, ipython.user_global_ns, ipython.user_ns) if kind == "eval" else None
                    if kind == "exec":
                        exec(code, ipython.user_global_ns, ipython.user_ns)
        except BaseException:
            print(CellReport(profiler.results[-1]))
            raise
        if value is not None:
            _display(value)
        return CellReport(profiler.results[-1])

    return gpumemprof


def _display(value: Any) -> None:
    from IPython.display import display

    display(value)


def _compiled(ipython: Any, source: str) -> list[tuple[str, Any]]:
    """The cell as IPython understands it (its magics and ! lines too), its last expression apart. Compiled before
    anything is measured: memory of the compiler is not the cell's."""
    import ast

    source = ipython.transform_cell(source)
    name = ipython.compile.cache(source, ipython.execution_count)  # so that a traceback can show the line
    tree = ipython.compile.ast_parse(source, filename=name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    steps = [("exec", compile(tree, name, "exec"))]
    if last is not None:
        # A semicolon at the end hides the value, as it does everywhere in a notebook.
        kind = "exec" if source.rstrip().endswith(";") else "eval"
        whole: Any = ast.Expression(last.value) if kind == "eval" else ast.Module([last], [])
        steps.append((kind, compile(whole, name, kind)))
    return steps
