"""Of programs in which nothing is wrong nothing is told that sounds as if something were.

What a pool terminates has no end of its own; all other processes leave with exit() or _exit()."""

import importlib.util
import json
import os
import re

import pytest
from healthy import others, ranks, training, workers

import harness
import with_tensorflow

EXAMPLE = "the example, with workers"
QUICK = ["six steps", "a loader with two workers", "a pool that is terminated"]
TORCH = training.PROGRAMS | workers.PROGRAMS | ranks.PROGRAMS | others.PROGRAMS
DOUBTS = re.compile(r"warning|critical|not complete|not exact|not recorded|incomplete|lost: |were gone", re.IGNORECASE)


def told(folder, argv, is_terminated=False, **popen):
    """What is said of a recording that sounds like trouble: lines of `run` and of `analyze`, findings, losses, ends."""
    popen.setdefault("timeout", 240)
    done = harness.record(folder, argv, **popen).ok()
    text = harness.execute([harness.COMMAND, "analyze", folder]).ok()
    ours = [line for line in done.stderr.decode().splitlines() if line.startswith("gpumemprof: ")]
    lines = [*ours, *text.stdout.decode().splitlines(), *text.stderr.decode().splitlines()]
    found = json.loads(harness.execute([harness.COMMAND, "analyze", "--format", "json", folder]).ok().stdout)
    return [*(line for line in lines if DOUBTS.search(line)),
            *(f["title"] for f in found["findings"] if f["severity"] != "info"),
            *(reason["reason"] for reason in found["lost"]["reasons"]),
            *(f"no end: {p['command']}" for p in found["processes"] if not p["exited_cleanly"] and not is_terminated)]  # fmt: skip


def write(folder, text):
    path = folder / "program.py"
    path.write_text(text)
    return path


def parameters(names):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def test_there_are_fifty_of_them():
    assert sum(map(len, (TORCH, ranks.TORCHRUN, others.KERAS, others.JAX))) + 1 >= 50


@pytest.mark.parametrize("name", parameters(TORCH))
def test_nothing_is_wrong_with(name, tmp_path):
    argv = [harness.PYTHON, write(tmp_path, TORCH[name])]
    assert told(tmp_path / "r", argv, is_terminated="with multiprocessing" in TORCH[name]) == []


def test_nothing_is_wrong_with_the_example_whose_workers_end_with_their_loader(tmp_path):
    program = harness.ROOT / "examples" / "train_transformer.py"
    assert told(tmp_path / "r", [harness.PYTHON, program, "--steps", "5", "--batch", "8"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ranks.TORCHRUN)
def test_nothing_is_wrong_with_ranks_of_torchrun(name, tmp_path):
    argv = [harness.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    assert told(tmp_path / "r", [*argv, write(tmp_path, ranks.TORCHRUN[name])]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", others.KERAS)
def test_nothing_is_wrong_with_keras_and_tensorflow(name, tmp_path):
    argv = [with_tensorflow.python("keras"), write(tmp_path, others.KERAS[name])]
    assert told(tmp_path / "r", argv, env=with_tensorflow.environment()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", others.JAX)
def test_nothing_is_wrong_with_jax(name, tmp_path):
    if importlib.util.find_spec("jaxlib") is None:
        pytest.skip("needs jax")
    environment = dict(os.environ, JAX_PLATFORMS="cpu")
    assert told(tmp_path / "r", [harness.PYTHON, write(tmp_path, others.JAX[name])], env=environment) == []
