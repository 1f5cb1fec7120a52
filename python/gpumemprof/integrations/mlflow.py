"""MLflow: metrics, series over time, and artifacts of a run, through MLflow's own client."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ._metrics import PREFIX, basis_of, require, series_points, summary_metrics, write_artifacts

_BATCH = 500  # metrics a request; MLflow takes 1000


def log_memory(source: Any, run_id: str | None = None, artifacts: bool = True, client: Any = None) -> str:
    """Logs what `source` (a profiler, a tracker, results, a file) measured; returns the run's id.

    Into the run `run_id`, else the active one, else a new one, as MLflow's fluent functions do. Metrics are
    `gpumemprof/peak_mib` and so on; every sample is a point of `gpumemprof/series/allocated_mib` at its own time, its
    step the number of the sample. `artifacts` adds the folder `gpumemprof` with the report, the data and a picture."""
    mlflow = require("mlflow", "mlflow")
    if run_id is None:
        run_id = str((mlflow.active_run() or mlflow.start_run()).info.run_id)
    client = client or mlflow.MlflowClient()
    for name, value in summary_metrics(source).items():
        client.log_metric(run_id, f"{PREFIX}/{name}", value)
    client.set_tag(run_id, f"{PREFIX}.basis", basis_of(source))
    metric = mlflow.entities.Metric
    points = [
        metric(f"{PREFIX}/series/{name}", value, round(time_s * 1000), step)
        for step, (time_s, cells) in enumerate(series_points(source))
        for name, value in cells.items()
    ]
    for start in range(0, len(points), _BATCH):
        client.log_batch(run_id, metrics=points[start : start + _BATCH])
    if artifacts:
        with tempfile.TemporaryDirectory() as folder:
            write_artifacts(source, Path(folder))
            client.log_artifacts(run_id, folder, PREFIX)
    return run_id
