"""TensorBoard: scalars through the training's own writer."""

from __future__ import annotations

from typing import Any

from ._metrics import PREFIX, basis_of, require, series_points, summary_metrics


def log_memory(source: Any, writer: Any = None, global_step: int | None = None, log_dir: Any = None) -> None:
    """Logs what `source` (a profiler, a tracker, results, a file) measured.

    `writer` is a torch.utils.tensorboard.SummaryWriter, left open; without one, one is made for `log_dir` and closed.
    Scalars are `gpumemprof/peak_mib` and so on at `global_step`, and `gpumemprof/series/allocated_mib` with a point a
    sample at its own wall time."""
    own = writer is None
    if own:
        writer = require("torch.utils.tensorboard", "tensorboard").SummaryWriter(log_dir=log_dir)
    try:
        for name, value in summary_metrics(source).items():
            writer.add_scalar(f"{PREFIX}/{name}", value, global_step)
        writer.add_text(f"{PREFIX}/basis", basis_of(source), global_step)
        for step, (time_s, cells) in enumerate(series_points(source)):
            for name, value in cells.items():
                writer.add_scalar(f"{PREFIX}/series/{name}", value, step, walltime=time_s)
        writer.flush()
    finally:
        if own:
            writer.close()
