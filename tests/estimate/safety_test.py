"""What `gpumemprof estimate -- CMD` must never do: write over the user's files, or run his program in earnest."""

import os
import shutil
import sys

import harness
import pytest
from estimate.estimate_test import MLP, estimate

pytest.importorskip("torch")
KEPT = b"weights of a week"


@pytest.mark.parametrize(
    ("imported", "save"),
    [
        ("", "torch.save(model.state_dict(), path)"),
        ("", "torch.save(obj=model.state_dict(), f=path)"),
        ("from torch import save", "save(model.state_dict(), path)"),
        ("import torch.distributed.checkpoint as shards", "shards.save(model.state_dict(), checkpoint_id=path)"),
        ("from safetensors.torch import save_file", "save_file(model.state_dict(), path)"),
    ],
)
def test_a_checkpoint_that_is_there_keeps_its_bytes(tmp_path, imported, save):
    if "safetensors" in imported:
        pytest.importorskip("safetensors")
    kept, script = tmp_path / "kept.pt", tmp_path / "train.py"
    kept.write_bytes(KEPT)
    script.write_text(f"path = {str(kept)!r}\n" + MLP.replace("    print(", f"    {save}\n    print(", 1))
    script.write_text(script.read_text().replace("from torch import nn", f"from torch import nn\n{imported}"))
    found = estimate("--", harness.PYTHON, script)
    assert kept.read_bytes() == KEPT
    assert "checkpoints were not written" in [one["what"] for one in found["assumptions"]]


def test_a_checkpoint_made_in_memory_ends_the_trace(tmp_path):
    kept, script = tmp_path / "kept.pt", tmp_path / "train.py"
    kept.write_bytes(KEPT)
    save = "import io; b = io.BytesIO(); torch.save(model, b); open(path, 'wb').write(b.getvalue())"
    script.write_text(f"path = {str(kept)!r}\n" + MLP.replace("    print(", f"    {save}\n    print(", 1))
    assert "saves a checkpoint into memory" in estimate("--", harness.PYTHON, script, rc=2)
    assert kept.read_bytes() == KEPT


def test_a_script_that_looks_for_torch_first_is_followed(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import importlib.util\nassert importlib.util.find_spec('torch')\n" + MLP)
    assert estimate("--", harness.PYTHON, script)["method"] == "trace_of_script"


def test_what_a_script_asks_of_the_accelerator_goes_to_no_driver(tmp_path):
    """Adam's step asks it too, in a CUDA build, and there the driver may be missing; a CPU build would raise."""
    script = tmp_path / "train.py"
    script.write_text("import torch\nassert torch.accelerator.current_device_index() == 0\n"
                      "assert not torch.accelerator.current_stream().is_capturing()\n"
                      "torch.accelerator.synchronize()\n" + MLP)
    assert estimate("--", harness.PYTHON, script)["method"] == "trace_of_script"


@pytest.fixture
def marker(tmp_path):
    """A program that says that it ran, and the file in which it does."""
    path, script = tmp_path / "ran", tmp_path / "mark.py"
    script.write_text(f"open({str(path)!r}, 'a').write('x')\n")
    return path, script


def refused(*words):
    said = estimate("--", *words, rc=2)
    assert said.count("\n") == 1 and said.startswith(f"gpumemprof: {words[0]}: "), said
    return said


@pytest.mark.parametrize("options", [["-S"], ["-uS"], ["-X", "dev", "-S"], ["-W", "ignore", "-E", "-S", "-u"]])
def test_a_python_without_the_package_runs_nothing(marker, options):
    said = refused(harness.PYTHON, *options, marker[1])
    assert said == (f"gpumemprof: {harness.PYTHON}: that Python does not have gpumemprof, without which the program would run for real: "
                    "install the package gpumemprof there\n")
    assert "that Python does not have gpumemprof" in refused(harness.PYTHON, *options, "-c", marker[1].read_text())
    assert not marker[0].exists()


def test_a_script_is_judged_by_the_python_of_its_first_line(marker):
    path, script = marker
    text = script.read_text()
    script.chmod(0o755)
    script.write_text(f"#!{harness.PYTHON} -S\n{text}")
    said = refused(script)
    assert "that Python does not have gpumemprof" in said and said.endswith(f": install the package gpumemprof in {harness.PYTHON}\n")
    script.write_text(f"#!/usr/bin/env -i {harness.PYTHON}\n{text}")
    assert "cannot verify" in refused(script)
    script.write_text(f"#!/bin/sh\n{harness.PYTHON} {script}\n")
    assert "cannot verify" in refused(script)
    assert not path.exists()
    script.write_text(f"#!{harness.PYTHON}\n{MLP}")
    assert estimate("--", script)["method"] == "trace_of_script"


@pytest.mark.skipif(not os.access("/usr/bin/python3", os.X_OK), reason="no other Python")
def test_another_python_runs_nothing(marker):
    assert "that Python does not have gpumemprof" in refused("/usr/bin/python3", marker[1])
    assert not marker[0].exists()


@pytest.mark.parametrize("launcher", [["sh", "-c"], ["env", "-i"], ["nice"], ["timeout", "9"]])
def test_what_is_no_python_runs_nothing(marker, launcher):
    path, script = marker
    words = [harness.PYTHON, script]
    said = refused(*launcher, *([f"{words[0]} {words[1]}"] if launcher[0] == "sh" else words))
    assert "cannot verify that its Python has gpumemprof" in said
    assert not path.exists()


def test_a_python_that_lost_the_way_to_the_package_runs_nothing(marker, tmp_path):
    python = tmp_path / "python"
    python.symlink_to(shutil.which("true"))
    assert "that Python does not have gpumemprof" in refused(python, marker[1])


@pytest.mark.parametrize(
    "after", ["", "import torch\n", "import torch\ntorch.ones(3)\n", "import sys\nsys.exit(3)\n"]
)
@pytest.mark.parametrize("options", [[], ["--on-host"]])
def test_what_has_no_gpu_runs_once(marker, after, options):
    path, script = marker
    script.write_text(script.read_text() + after)
    estimate(*options, "--", harness.PYTHON, script, rc=2)
    assert path.read_text() == "x"


@pytest.mark.parametrize("name", ["tensorflow", "jax"])
def test_another_framework_ends_the_program(marker, tmp_path, name):
    path, script = marker
    (tmp_path / f"{name}.py").write_text("")
    script.write_text(f"import {name}\n" + script.read_text())
    assert f"the program uses {name}: estimate traces PyTorch programs" in estimate("--", sys.executable, script, rc=2)
    assert not path.exists()


NEEDS_VALUES = MLP.replace("model(x), y)", "model(x[(x.sum(1) > -1e9).nonzero().squeeze(1)]), y)")


def test_no_real_step_is_made_unasked(tmp_path):
    script = tmp_path / "choose.py"
    script.write_text(NEEDS_VALUES)
    said = estimate("--", harness.PYTHON, script, rc=2)
    assert "--on-host would run two real steps" in said and "choose.py:9" in said and "step 0" not in said


def test_no_real_step_is_made_at_each_batch_that_is_tried(tmp_path):
    script = tmp_path / "differs.py"
    layers = "nn.Linear(1000, 500), nn.ReLU(), *[nn.Linear(500, 500) for _ in range(batch // 4)], "
    script.write_text(NEEDS_VALUES.replace("nn.Linear(1000, 500), nn.ReLU(), ", layers))
    said = estimate("--on-host", "--batch", "auto", "--capacity", "2GiB", "--", harness.PYTHON, script, "{batch}", rc=2)
    assert "--batch auto does not run two real steps for each batch" in said
    assert said.count("step 0") == 2  # those of the two small batches
