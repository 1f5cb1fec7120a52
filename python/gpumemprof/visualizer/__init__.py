"""MemoryVisualizer: plots of measurements by matplotlib (`pip install matplotlib`), and the page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._analysis.inputs import collect
from .._analysis.measured import Measured
from ._style import NO_DATA, is_html, require


class MemoryVisualizer:
    """Plots of a profiler, its results, a tracker, its events, a telemetry file, a recording, or samples in bytes.

    Every method takes its source first, by default `profiler`. The extension of `save_path` selects the format: .png,
    .svg and .pdf by matplotlib, .html for the page. Raises ValueError if there is nothing to show, ImportError with the
    package to install if matplotlib is missing.
    """

    def __init__(self, profiler: Any = None, figure_size: tuple[float, float] = (10.0, 5.5)) -> None:
        self.profiler = profiler
        self.figure_size = figure_size

    def plot_memory_timeline(
        self, results: Any = None, snapshots: Any = None, save_path: Any = None, interactive: bool = True
    ) -> Any:
        """Memory over time with the peak marked, calls below. Returns a Page, or a matplotlib figure with
        interactive=False."""
        from . import _page, _timeline

        measured = self._measured(results, snapshots)
        return self._picture(measured, save_path, interactive, _timeline.draw, _page.timeline)

    def plot_function_comparison(
        self, results: Any = None, metric: str = "peak_memory", save_path: Any = None, interactive: bool = True
    ) -> Any:
        """Compares functions by "peak_memory", "memory_allocated", "memory_kept", "execution_time" or "call_count",
        highest first, at most 20. Raises ValueError for another metric."""
        from . import _functions, _page

        measured = self._measured(results, None, needs_time=False)
        rows = _functions.rows_of(measured, metric)
        return self._picture(
            measured,
            save_path,
            interactive,
            lambda m, size: _functions.draw(m, rows, metric, size),
            lambda m: _page.functions(m, metric),
        )

    def plot_memory_heatmap(self, results: Any = None, save_path: Any = None, interactive: bool = False) -> Any:
        """Functions over time, coloured by their highest memory; without functions, the kinds of memory over time."""
        from . import _heatmap, _page

        measured = self._measured(results, None)
        return self._picture(measured, save_path, interactive, _heatmap.draw, _page.heatmap)

    create_memory_heatmap = plot_memory_heatmap

    def plot_cross_rank_timeline(self, events: Any, save_path: Any = None) -> Any:
        """One line per rank on one clock: the device's use, or the allocated bytes if no rank knows it."""
        from . import _ranks

        figure = _ranks.draw(collect(events), self.figure_size)
        return self._saved(figure, save_path)

    def create_dashboard(self, results: Any = None, snapshots: Any = None, save_path: Any = None) -> Any:
        """One Page with the timeline, functions with their calls, and functions over time."""
        from . import _page

        page = _page.Page(_page.whole(self._measured(results, snapshots)))
        if save_path is not None:
            page.save(save_path)
        return page

    def create_interactive_dashboard(
        self,
        results: Any = None,
        port: int = 8050,
        host: str = "127.0.0.1",
        interval_s: float = 1.0,
        block: bool = False,
    ) -> Any:
        """Serves a live page of the profiler or tracker. Returns a Dashboard with `url`, `stop()` and `wait()`.

        It ends with the program; `block=True` or `wait()` runs until Ctrl-C. Port 0 picks a free one.
        """
        from .dashboard import Dashboard

        dashboard = Dashboard(self.profiler if results is None else results, port, host, interval_s)
        dashboard.start()
        if block:
            dashboard.wait()
        return dashboard

    def export_data(
        self, results: Any = None, snapshots: Any = None, format: str | None = None,
        save_path: Any = "memory_profile_data", output_path: Any = None,
    ) -> str:  # fmt: skip
        """Writes calls and samples to a file and returns its path. The format is `format` ("csv" or "json"), otherwise the
        path's extension, otherwise CSV; it is appended to a path with another extension. As CSV, calls and samples
        together are two files, NAME.csv and NAME_samples.csv."""
        from ._export import export

        measured = self._measured(results, snapshots, empty_is_an_error=False, needs_time=False)
        return export(measured, Path(os.fspath(save_path if output_path is None else output_path)), format)

    def save_plots(self, results: Any = None, output_dir: Any = "plots") -> list[str]:
        """Saves every plot for which the source has data into a folder, which is created; returns the paths."""
        measured = self._measured(results, None)
        folder = Path(os.fspath(output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "memory_timeline.png", folder / "memory_heatmap.png"]
        self.plot_memory_timeline(measured, save_path=paths[0], interactive=False)
        self.plot_memory_heatmap(measured, save_path=paths[1])
        if measured.functions:
            paths.append(folder / "function_comparison.png")
            self.plot_function_comparison(measured, save_path=paths[-1], interactive=False)
        return [str(path) for path in paths]

    def show(self, figure: Any) -> None:
        """Opens a window or a browser tab; without a display matplotlib only warns."""
        if hasattr(figure, "document"):
            figure.show()
            return
        # The figure belongs to no window yet: it takes that of an empty one.
        pyplot = require("matplotlib.pyplot")
        manager = pyplot.figure().canvas.manager
        manager.canvas.figure = figure
        figure.set_canvas(manager.canvas)
        pyplot.show()

    def _measured(
        self, results: Any, snapshots: Any, empty_is_an_error: bool = True, needs_time: bool = True
    ) -> Measured:
        source = self.profiler if results is None and snapshots is None else results
        if snapshots is not None:
            source = {"results": results or (), "snapshots": snapshots}
        measured = collect(source)
        if not measured.calls and not len(measured.series) and self.profiler is not None and needs_time:
            measured = collect(self.profiler)  # a summary has no moments in it, but what it sums up has
        if needs_time and measured.functions and not measured.calls and not len(measured.series):
            raise ValueError(f"{NO_DATA}: totals have no moments in them: give the profiler, its results or a file")
        if measured.empty and empty_is_an_error:
            raise ValueError(f"{NO_DATA}: {measured.unknown}")
        return measured

    def _picture(self, measured: Measured, save_path: Any, interactive: bool, static: Any, dynamic: Any) -> Any:
        """What is returned follows `interactive`, what is written the extension; often both are one."""
        from ._page import Page

        as_html = save_path is not None and is_html(save_path)
        page = Page(dynamic(measured)) if interactive or as_html else None
        if page and as_html:
            page.save(save_path)
        if interactive and (save_path is None or as_html):
            return page
        drawn = self._saved(static(measured, self.figure_size), save_path) if not as_html or not interactive else None
        return page if interactive else drawn

    def _saved(self, figure: Any, save_path: Any) -> Any:
        if save_path is not None and not is_html(save_path):
            path = Path(os.fspath(save_path))
            path.parent.mkdir(parents=True, exist_ok=True)
            # No date and no version in the file: the same data is the same picture, byte for byte.
            empty = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
            figure.savefig(path, dpi=120, metadata=empty.get(path.suffix.lower()))
        return figure
