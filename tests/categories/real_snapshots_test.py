"""Real snapshots of training: parameters, gradients and optimizer state are what the model's sizes say, to the byte.

The files do not say which model they are of. Their programs are those of a course whose transformer and sizes are
published; each has one size whose count of parameters fits, and none of that is what the rules look at.
"""

import harness
import pytest
from commands import snapshots

FLOAT = 4


def transformer(width, inner, layers, vocabulary=10_000):
    """Bytes: embedding and head, four projections, three matrices of SwiGLU, two norms a layer and the last."""
    layer = 4 * width * width + 3 * width * inner + 2 * width
    return FLOAT * (2 * vocabulary * width + layers * layer + width)


def lora(rank, width, keys, layers):
    """Bytes of two small matrices beside the query's and the value's projection of each layer."""
    return FLOAT * layers * rank * (width + width + width + keys)


MEDIUM, LARGE, LARGEST = transformer(1024, 4096, 24), transformer(1280, 5120, 36), transformer(2560, 10240, 32)
CASES = {
    # At the peak: the share that is unknown at most, and what is known otherwise.
    "training_ctx256_torch210.pickle": (0.001, {"parameter": MEDIUM, "optimizer state": 2 * MEDIUM}),
    "training_ctx512_torch210.pickle": (0.001, {"parameter": MEDIUM, "optimizer state": 2 * MEDIUM}),
    "training_torch26.pickle": (0.002, {"parameter": LARGE, "optimizer state": 2 * LARGE, "gradient": LARGE}),
    "fullstep_ctx256_torch26.pickle": (
        0.001, {"parameter": LARGEST, "optimizer state": 2 * LARGEST, "gradient": LARGEST}),
    # The model itself is frozen and was there before: nothing tells what it is.
    "lora_finetune_torch21.pickle": (0.19, {"parameter": lora(16, 2048, 256, 22)}),
}  # fmt: skip
# Device by device, the bytes of handles' workspaces: 8,519,680 each, 32 MiB on Hopper.
WORKSPACES = {
    "training_ctx512_torch210.pickle": 2 * 8_519_680,
    "training_torch26.pickle": 2 * 8_519_680,
    "fullstep_ctx256_torch26.pickle": 2 * (32 << 20),
    "forward_2_7b_torch26.pickle": 2 * (32 << 20),
    "no_history.pickle": 8_519_680,
}


def device_of(name):
    (device,) = [d for d in harness.analysis(snapshots.real(name))["devices"] if d["peak"]["requested_bytes"]]
    return device


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_learns_holds_what_its_sizes_say(name):
    unknown, expected = CASES[name]
    device = device_of(name)
    found = device["categories_at_peak"]
    assert {category: found[category] for category in expected} == expected
    assert found["unknown"] <= unknown * device["peak"]["requested_bytes"]


@pytest.mark.parametrize("name", WORKSPACES)
def test_workspaces_have_the_sizes_that_pytorch_gives_them(name):
    assert device_of(name)["categories_at_peak"]["workspace"] == WORKSPACES[name]


@pytest.mark.parametrize("name, index", snapshots.real_traces())
def test_every_byte_at_the_peak_has_a_category_and_a_confidence(name, index):
    (device,) = [d for d in harness.analysis(snapshots.real(name))["devices"] if d["device"] == f"cuda:{index}"]
    peak = device["peak"]["requested_bytes"]
    assert sum(device["categories_at_peak"].values()) == peak
    assert sum(device["category_confidence_at_peak"].values()) == peak
    assert sum(rule["bytes"] for rule in device["category_rules_at_peak"]) == peak
    assert device["category_confidence_at_peak"]["none"] == device["categories_at_peak"]["unknown"]


def test_what_an_out_of_memory_ended_is_a_guess_and_not_called_a_temporary():
    (device,) = [d for d in harness.analysis(snapshots.real("expandable_oom_4gpu.pickle"))["devices"]
                 if d["device"] == "cuda:1"]
    assert device["categories_at_peak"]["temporary"] == 0
    assert device["category_confidence_at_peak"]["low"] == device["categories_at_peak"]["activation"]
