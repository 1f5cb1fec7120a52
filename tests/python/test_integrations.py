"""Experiment trackers and training loops with the real libraries, writing to local folders.

They are in a venv of their own: `scripts/test-integrations` makes it and runs this file in it; the one test for
everybody else runs that script."""

import json
import os
import subprocess
import sys
from pathlib import Path

import harness
import pytest
from made_results import MIB, START_S, samples, training

ROOT = Path(__file__).resolve().parents[2]
INSIDE = os.environ.get("GPUMEMPROF_INTEGRATIONS") == "1"
inside = pytest.mark.skipif(not INSIDE, reason="runs in the venv of scripts/test-integrations")
LIBRARIES = ("mlflow", "wandb", "tensorboard", "lightning", "transformers")


@pytest.mark.slow
@pytest.mark.skipif(INSIDE, reason="this is what it runs")
def test_everything_here_passes_with_the_real_libraries():
    done = subprocess.run(
        [ROOT / "scripts" / "test-integrations", "-q"], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_the_modules_import_none_of_the_libraries():
    program = f"""if True:
        import sys
        import gpumemprof.integrations.mlflow, gpumemprof.integrations.wandb, gpumemprof.integrations.tensorboard
        import gpumemprof.integrations.lightning, gpumemprof.integrations.transformers, gpumemprof.notebook
        loaded = set({LIBRARIES + ("torch", "numpy", "IPython", "matplotlib")!r}) & set(sys.modules)
        assert not loaded, loaded
    """
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_library_names_its_package(library):
    program = f"""if True:
        import sys
        sys.modules[{library!r}] = None
        sys.modules["torch.utils.tensorboard"] = None
        from gpumemprof.integrations import {library} as module
        try:
            getattr(module, "log_memory", None) and module.log_memory([1, 2, 3]) or module.GPUMemoryCallback()
        except ImportError as error:
            assert f"is required: install it for {{sys.executable}} with `pip install {library}` (" in str(error), error
        else:
            raise SystemExit("no error")
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_series_of_many_samples_keeps_its_peak():
    from gpumemprof.integrations._metrics import MOST_POINTS, series_points

    series = [MIB] * 100_000
    series[54_321] = 7 * MIB
    points = series_points(series)
    assert len(points) <= MOST_POINTS
    assert max((cells["allocated_mib"], time_s) for time_s, cells in points) == (7, 54_321)


@inside
def test_mlflow_has_metrics_series_and_artifacts(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # its local folder wants to be asked for since 3.x
    import mlflow

    from gpumemprof.integrations.mlflow import log_memory

    mlflow.set_tracking_uri(f"file://{tmp_path}/store")
    with mlflow.start_run() as run:
        assert log_memory(training()) == run.info.run_id
        log_memory(samples([MIB, 3 * MIB, 2 * MIB]), artifacts=False)
    client = mlflow.MlflowClient()
    data = client.get_run(run.info.run_id).data
    assert data.metrics["gpumemprof/function/train_step/peak_mib"] == 511
    assert data.metrics["gpumemprof/calls"] == 27
    assert data.tags["gpumemprof.basis"] == "unknown"  # of the second source, which does not say
    history = client.get_metric_history(run.info.run_id, "gpumemprof/series/allocated_mib")
    series = [(m.timestamp, m.value) for m in history]
    assert (round(START_S * 1000), 200.0) in series and (round((START_S + 0.1) * 1000), 3.0) in series
    names = {item.path for item in client.list_artifacts(run.info.run_id, "gpumemprof")}
    assert {"gpumemprof/report.json", "gpumemprof/data.json", "gpumemprof/memory_timeline.png"} == names


@inside
def test_wandb_has_a_summary_and_an_artifact_and_keeps_its_steps(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    import wandb

    from gpumemprof.integrations.wandb import log_memory

    with pytest.raises(RuntimeError, match="there is no run"):
        log_memory(training())
    with wandb.init(project="p", dir=str(tmp_path)) as run:
        run.log({"loss": 1.0})
        artifact = log_memory(training())
        assert run.step == 1  # the training's, as it was
        assert run.summary["gpumemprof/function/train_step/peak_mib"] == 511
        assert run.summary["gpumemprof/basis"] == "exact"
    assert {"series.table.json", "report.json", "data.json", "memory_timeline.png"} == set(artifact.manifest.entries)
    table = json.loads(Path(artifact.manifest.entries["series.table.json"].local_path).read_text())
    assert table["columns"] == ["timestamp_s", "allocated_mib"]
    assert table["data"][:2] == [[START_S, 200.0], [START_S + 0.05, 232.0]]


@inside
def test_tensorboard_reads_back_what_was_logged(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    from gpumemprof.integrations.tensorboard import log_memory

    writer = SummaryWriter(log_dir=tmp_path)
    log_memory(training(), writer, global_step=7)
    writer.add_scalar("loss", 1.0, 8)  # it is still open
    writer.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    (peak,) = events.Scalars("gpumemprof/function/train_step/peak_mib")
    assert (peak.step, peak.value) == (7, 511)
    series = events.Scalars("gpumemprof/series/allocated_mib")
    assert len(series) == 54 and (series[0].wall_time, series[0].value) == (START_S, 200.0)
    assert events.Scalars("loss")[0].value == 1.0
    log_memory(training(), log_dir=tmp_path / "own")
    assert list((tmp_path / "own").iterdir())


def module_that_allocates(base, steps):
    """A Lightning module whose every step makes and drops 64 MiB."""
    import torch

    class Module(base):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, batch_idx):
            big = torch.ones(64 * MIB, dtype=torch.uint8)
            return self.layer(batch[0]).mean() + 0 * big[0]

        def validation_step(self, batch, batch_idx):
            self.layer(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(steps, 4)), batch_size=1)
    return Module(), data


@inside
def test_lightning_logs_the_peak_of_every_step_and_keeps_the_results(tmp_path):
    import lightning.pytorch as pl
    from lightning.pytorch.loggers import CSVLogger

    from gpumemprof.integrations.lightning import GPUMemoryCallback

    module, data = module_that_allocates(pl.LightningModule, steps=6)
    callback = GPUMemoryCallback()
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", callbacks=[callback], logger=CSVLogger(tmp_path), log_every_n_steps=2,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(module, data, data)
    counts = {name: len(results) for name, results in callback.profiler.function_stats.items()}
    assert counts == {"train_step": 6, "validation_step": 6}
    text = (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").read_text()
    assert "gpumemprof/peak_over_start_mib" in text.splitlines()[0]
    logged = trainer.logged_metrics["gpumemprof/peak_mib"]
    assert float(logged) == pytest.approx(
        callback.profiler.function_stats["train_step"][-1].peak_memory_usage() / MIB
    )


@inside
def test_a_lightning_step_that_raises_is_measured_and_raises(tmp_path):
    import lightning.pytorch as pl

    from gpumemprof.integrations.lightning import GPUMemoryCallback

    module, data = module_that_allocates(pl.LightningModule, steps=2)

    def fail(batch, batch_idx):
        raise ArithmeticError("the step's own")

    module.training_step = fail
    callback = GPUMemoryCallback()
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    with pytest.raises(ArithmeticError, match="the step's own"):
        trainer.fit(module, data)
    assert [result.error for result in callback.profiler.results] == ["ArithmeticError"]


@inside
def test_the_transformers_trainer_logs_the_memory_of_its_steps(tmp_path, monkeypatch):
    import torch
    import transformers

    from gpumemprof.integrations.transformers import GPUMemoryCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels=None):
            return {"loss": self.layer(x).mean()}

    seen = []

    class Reporter(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            seen.append(dict(logs))

    callback = GPUMemoryCallback()
    trainer = transformers.Trainer(
        model=Model(),
        train_dataset=[{"x": torch.ones(4), "labels": torch.ones(1)} for _ in range(8)],
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path),
            per_device_train_batch_size=1,
            max_steps=4,
            logging_steps=2,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            disable_tqdm=True,
        ),
        callbacks=[Reporter()],
    )
    callback.attach(trainer)
    trainer.train()
    assert [result.function_name for result in callback.profiler.results] == ["train_step"] * 4
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(logged) == 2
    assert logged[-1]["gpumemprof/peak_mib"] == callback.profiler.results[-1].peak_memory_usage() / MIB
    assert all("gpumemprof/peak_mib" in logs for logs in seen if "loss" in logs)


@inside
@pytest.mark.parametrize("library, prefix", [("transformers", "body"), ("lightning", "net.body")])
def test_a_recording_has_the_steps_and_modules_of_somebody_elses_loop(tmp_path, library, prefix):
    program = [sys.executable, harness.PROGRAMS / "trainer_loops.py", library]
    without = harness.execute([*program, tmp_path / "without"], timeout=300).ok()
    with_us = harness.record(tmp_path / "recording", [*program, tmp_path / "with"], timeout=300).ok()
    assert with_us.stdout.splitlines()[-1] == without.stdout.splitlines()[-1]  # others print too
    events = [e for e in harness.events(with_us.folder) if e["action"] == "alloc"]
    # How many steps had ended; nothing is said before the first one has.
    assert {e.get("step", 0) for e in events if e.get("phase") == "optimizer"} == set(range(6))
    # With Lightning forward and backward run within the optimizer's step, in its closure.
    calls = [e for e in events if "module" in e and not any(line.startswith("<torch backward>") for line in e["stack"])]
    assert {e["phase"] for e in calls} <= {"forward", "evaluation"}
    assert {e["module"] for e in calls if e["phase"] == "forward"} >= {f"{prefix}.{i}" for i in range(3)}
    modules = {e["module"] for e in events if "module" in e}
    assert {f"{prefix}.0", f"{prefix}.1", f"{prefix}.2"} <= modules
    assert not any("@" in name for name in modules)
