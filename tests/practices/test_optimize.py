"""Steps that are made to fit into a budget, and what is promised of it: measured, equal bit for bit, undone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = Path(__file__).parent / "programs" / "optimize_models.py"
# Of the model in the program: weights and biases of six blocks of three layers, and the head.
WEIGHTS = (6 * 3 * (64 * 64 + 64) + 64 + 1) * 4


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    env = dict(os.environ, OMP_NUM_THREADS="1", GPUMEMPROF_DIR="")
    folder = tmp_path_factory.mktemp("optimize")
    done = subprocess.run(
        [sys.executable, PROGRAM], capture_output=True, text=True, timeout=120, env=env, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_model_is_not_trained_and_undo_leaves_nothing(said):
    same = {"weights": True, "state": True, "numbers": True}
    assert said["untouched"] == same | {"patched": 0, "foreach": True}


def test_a_budget_that_has_room_brings_the_free_measures_alone(said):
    """The peak is where backward begins: gradients that are gone by then are saved as a whole."""
    roomy = said["checkpointed"]["roomy"]
    assert roomy["fits"] and roomy["basis"] == "exact" and roomy["losses_equal"]
    dropped = roomy["measures"]["set_to_none"]
    assert dropped["applied"] and dropped["agreement"] == "bit for bit"
    assert dropped["saved"] == WEIGHTS
    assert roomy["before"] - roomy["after"] == sum(m["saved"] for m in roomy["measures"].values() if m["applied"])
    assert roomy["measures"]["checkpointing"]["reason"] == "not needed"


def test_only_checkpointing_meets_the_budget_and_as_little_as_needed(said):
    """A block keeps three outputs, the dropout's mask and the input of the first layer, which is the output of the
    block before. Checkpointed, it saves three: the first two, the mask in one byte or four, and the output that the
    dropout takes, less the state of the random numbers."""
    tight = said["checkpointed"]["tight"]
    assert tight["fits"] and tight["losses_equal"]
    measure = tight["measures"]["checkpointing"]
    assert measure["applied"] and measure["agreement"] == "bit for bit"
    # Two save enough but where one of them is the last, which is there again when the peak is.
    assert len(measure["modules"]) in (2, 3) and all(name.startswith("blocks.") for name in measure["modules"])
    assert 5 * said["activation"] <= measure["saved"] <= 9 * said["activation"]
    assert "+ checkpointing: saves" in tight["text"] and "fits into" in tight["text"]


def test_a_batch_is_cut_until_it_fits(said):
    """Two Tanh of 512 in 2,048 rows are 8 MiB: half of them at a time is what was asked for."""
    cut = said["cut"]
    measure = cut["measures"]["accumulation"]
    assert cut["fits"] and measure["applied"] and measure["pieces"] in (2, 4)
    assert measure["agreement"].startswith("within ") and cut["loss"] > 0
    assert cut["measures"]["checkpointing"]["reason"].startswith("no module below the root")


def test_a_factored_optimizer_is_tried_where_it_is_asked_for(said):
    """Adam has two numbers a weight, Adafactor a row and a column."""
    measure = said["factored"]["batch"]["measures"]["optimizer state: factored"]
    assert measure["applied"] and "trains differently" in measure["reason"]
    assert measure["saved"] > 512 * 512 * 4
    own = said["factored"]["own_step"]["measures"]
    assert own["optimizer state: 8bit"]["reason"].startswith("step() creates its own optimizer")
    assert own["set_to_none"]["reason"] == "no optimizer stepped"


def test_wrong_arguments_are_told_in_words(said):
    assert said["errors"] == {
        "budget": "budget is a size like \"20GiB\", not '20 apples'",
        "steps": "two steps are needed: the first one creates the optimizer state",
        "batch": "give batch and optimizer together: step(batch) then returns only the loss",
        "kind": "optimizer_state is \"8bit\", \"factored\" or None, not '4bit'",
        "arguments": "step() takes no arguments unless batch and optimizer are given",
    }


def test_a_step_that_differs_from_itself_is_not_said_to_agree(said):
    ran = said["unrepeatable"]
    assert "runs of the unchanged step differ" in ran["text"]
    compared = [m for m in ran["measures"].values() if m["agreement"]]
    assert compared and all(", as it was within " in m["agreement"] for m in compared)


def test_a_step_that_differs_from_itself_is_not_cut_unseen(said):
    """Its loss is a sum, so that pieces would train another thing."""
    much, little = (said["uncut"][name]["measures"]["accumulation"] for name in ("much", "little"))
    assert not much["applied"] and much["reason"].startswith("the step differs from run to run")
    assert not little["applied"] and little["reason"] == "results differ"


def test_another_optimizer_has_the_settings_that_it_knows(said):
    ran = said["settings"]
    measure = ran["measures"]["optimizer state: factored"]
    assert measure["applied"] and ran["kind"] == "Adafactor" and ran["undone"]
    assert "without betas, eps, which it does not have" in measure["reason"]
    assert "schedulers still refer to the old optimizer" in measure["reason"]
    same = {"maximize": True, "foreach": False, "eps": [None, 0.001]}
    assert ran["groups"] == [
        {"lr": 0.5, "initial_lr": 0.5, "weight_decay": 0.125} | same,
        {"lr": 0.25, "initial_lr": 0.25, "weight_decay": 0.25} | same,
    ]


def test_resident_memory_is_no_basis():
    """Without a probe on the CPU there is nothing to compare a few tensors by."""
    code = "import torch, gpumemprof; m = torch.nn.Linear(2, 2); gpumemprof.optimize(m, lambda: m(torch.ones(2)).sum())"
    env = {**os.environ, "GPUMEMPROF_NO_ATTACH": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env, check=False)
    assert "optimize() needs counted allocations on the CPU" in done.stderr
