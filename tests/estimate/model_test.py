"""`gpumemprof estimate --model`: models of libraries, in the environment that scripts/setup accuracy makes."""

import json
import os

import harness
import pytest

PYTHON = harness.ROOT / "build" / "venvs" / "accuracy" / "bin" / "python"
if not PYTHON.exists():
    pytest.skip("needs timm: scripts/setup accuracy installs it", allow_module_level=True)
ENVIRONMENT = {**os.environ, "GPUMEMPROF_PYTHON": str(PYTHON)}
RESNET18_PARAMETERS = 11_689_512  # as its paper's architecture has them, with 1,000 classes


def estimate(*options):
    argv = [harness.COMMAND, "estimate", "--format", "json", *options]
    return json.loads(harness.execute(argv, timeout=240, env=ENVIRONMENT).ok().stdout)


@pytest.mark.slow
def test_optimizers_and_precisions_are_lines_of_the_table():
    found = estimate("--model", "timm:resnet18", "--batch", "4", "--optimizer", "sgd,adam", "--precision", "fp32,bf16")
    assert [row["settings"] for row in found["table"]] == ["sgd, fp32", "sgd, bf16", "adam, fp32", "adam, bf16"]
    assert found["by_category"]["parameter"] == 4 * RESNET18_PARAMETERS
    assert "optimizer state" not in found["by_category"]
    single, half, adam = (row["live"]["expected_bytes"] for row in found["table"][:3])
    assert half < single < adam


@pytest.mark.slow
def test_the_largest_batch_of_a_model_fits_and_one_more_does_not():
    options = ["--model", "timm:resnet18", "--optimizer", "momentum", "--capacity", "4GiB"]
    found = estimate(*options, "--batch", "auto")
    batch = found["largest_batch"]["batch"]
    assert found["peaks"]["device"]["high_bytes"] <= 4 << 30
    assert found["by_category"]["optimizer state"] == 4 * RESNET18_PARAMETERS
    assert estimate(*options, "--batch", str(batch + 1))["peaks"]["device"]["high_bytes"] > 4 << 30


def test_a_model_that_is_not_there_is_one_line():
    done = harness.execute([harness.COMMAND, "estimate", "--model", "timm:no_such_model"], timeout=120, env=ENVIRONMENT)
    assert (
        done.rc == 2
        and done.stderr.decode().splitlines()[-1] == "gpumemprof: timm:no_such_model: Unknown model (no_such_model)"
    )
