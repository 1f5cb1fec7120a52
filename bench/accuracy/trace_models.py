"""Traces the models of a table of measured peaks, each at two small batches, into a folder. Resumable: what is there is
not traced again. One process, which imports the libraries once and forks for each model.

    python bench/accuracy/trace_models.py TABLE FOLDER [--models N]
"""

from __future__ import annotations

import argparse
import csv
import gc
import hashlib
import os
import signal
import sys
import time
from pathlib import Path

BATCHES = (2, 4)
TIME_LIMIT_S = 240


def order(name: str) -> str:
    """A fixed order that has nothing to do with what a model is: the first N are a fair sample, on every machine."""
    return hashlib.sha256(name.encode()).hexdigest()


def models(table: Path) -> list[str]:
    with table.open(newline="") as file:
        return sorted({row["model"] for row in csv.DictReader(file)}, key=order)


def paths(folder: Path, model: str) -> list[Path]:
    return [folder / f"{model}.{batch}.trace" for batch in BATCHES]


def trace_in_child(folder: Path, model: str) -> None:
    import torch

    from gpumemprof._children.estimate.library_model import LoopSetup, trace

    torch.set_num_threads(1)
    for batch, path in zip(BATCHES, paths(folder, model)):
        began, began_cpu = time.monotonic(), time.process_time()
        setup = LoopSetup(f"timm:{model}", batch, optimizer="momentum")
        log = trace(setup)
        log.write(
            str(path),
            {
                "subject": setup.model,
                "batch": batch,
                "optimizer": setup.optimizer,
                "precision": setup.precision,
                "torch": torch.__version__,
                **setup.facts,
                "trace_s": round(time.monotonic() - began, 3),
                "trace_cpu_s": round(time.process_time() - began_cpu, 3),
            },
        )


def run_one(folder: Path, model: str) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(TIME_LIMIT_S)
            trace_in_child(folder, model)
            code = 0
        except BaseException as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            (folder / f"{model}.error").write_text(text[:300] + "\n")
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        (folder / f"{model}.error").write_text(f"ended by signal {os.WTERMSIG(status)}\n")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("table", type=Path)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--models", type=int, default=0, help="of the fixed order only the first N")
    parsed = arguments.parse_args()
    parsed.folder.mkdir(parents=True, exist_ok=True)
    wanted = models(parsed.table)
    if parsed.models:
        wanted = wanted[: parsed.models]
    missing = [
        model
        for model in wanted
        if not all(path.exists() for path in paths(parsed.folder, model))
        and not (parsed.folder / f"{model}.error").exists()
    ]
    if not missing:
        return
    from gpumemprof._children.estimate.library_model import import_torchvision

    import_torchvision()
    import timm  # noqa: F401

    gc.collect()
    gc.freeze()  # what is imported is not looked through again in each child
    for number, model in enumerate(missing):
        began = time.monotonic()
        run_one(parsed.folder, model)
        print(f"{number + 1}/{len(missing)} {model} {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
