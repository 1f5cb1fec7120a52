"""MemoryVisualizer: gpumemprof's plots of measurements with TensorFlow."""

from __future__ import annotations

from typing import Any

from gpumemprof.visualizer import MemoryVisualizer as _Visualizer


class MemoryVisualizer(_Visualizer):
    """Plots of results, profilers, trackers, files and recordings. Each method takes its source first.

    A timeline is drawn by matplotlib, or with `interactive=True` by plotly; otherwise as in
    gpumemprof.MemoryVisualizer. The only `style` is "default", because the plots have their own colours; ValueError for
    another.
    """

    def __init__(self, style: Any = "default", figure_size: tuple[float, float] = (12.0, 8.0)) -> None:
        profiler = None if isinstance(style, str) else style  # MemoryVisualizer(profiler), as with gpumemprof
        if isinstance(style, str) and style != "default":
            raise ValueError(f"style {style!r:.40} is unknown: the only style is 'default'")
        super().__init__(profiler, figure_size)

    def plot_memory_timeline(  # type: ignore[override]
        self, results: Any = None, interactive: bool = False, save_path: Any = None, snapshots: Any = None
    ) -> Any:
        """Memory over time with the peak marked, calls below: a matplotlib figure, or plotly's with interactive=True.
        """
        return super().plot_memory_timeline(results, snapshots, save_path, interactive)

    def plot_function_comparison(  # type: ignore[override]
        self, function_profiles: Any = None, save_path: Any = None, metric: str = "peak_memory",
        interactive: bool = False,
    ) -> Any:  # fmt: skip
        """Compares functions, highest first: those of results, or of their `function_profiles`."""
        return super().plot_function_comparison(function_profiles, metric, save_path, interactive)
