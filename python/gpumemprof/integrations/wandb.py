"""Weights & Biases: the summary and an artifact of a run. The run's steps belong to the training and are not used."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ._metrics import PREFIX, basis_of, require, series_points, summary_metrics, write_artifacts


def log_memory(source: Any, run: Any = None, artifacts: bool = True) -> Any:
    """Logs what `source` (a profiler, a tracker, results, a file) measured into `run`, else the current one; returns
    the artifact, None with artifacts=False.

    The run's summary gets `gpumemprof/peak_mib` and so on. The artifact `gpumemprof-RUN` has the report, the data, a
    picture, and the table `series` with a row a sample. RuntimeError where no run was begun."""
    wandb = require("wandb", "wandb")
    run = run or wandb.run
    if run is None:
        raise RuntimeError("there is no run: call wandb.init() first, or pass one as run=")
    run.summary.update({f"{PREFIX}/{name}": value for name, value in summary_metrics(source).items()})
    run.summary[f"{PREFIX}/basis"] = basis_of(source)
    if not artifacts:
        return None
    artifact = wandb.Artifact(f"{PREFIX}-{run.id}", type="memory_profile")
    points = series_points(source)
    columns = sorted({name for _, cells in points for name in cells})
    rows = [[time_s, *(cells.get(name) for name in columns)] for time_s, cells in points]
    artifact.add(wandb.Table(columns=["timestamp_s", *columns], data=rows), "series")
    with tempfile.TemporaryDirectory() as folder:
        for path in write_artifacts(source, Path(folder)):
            artifact.add_file(str(path), name=path.name)  # copied here and now: the folder goes
        run.log_artifact(artifact)
    return artifact
