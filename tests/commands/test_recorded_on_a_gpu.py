"""A recording of a small program on an H200 (bench/gpu/live.py has it): its figures are arithmetic on the model's sizes."""

import harness
import pytest

FOLDER = harness.ROOT / "tests" / "fixtures" / "gpu" / "linear_h200"
MIB = 1 << 20
LAYERS, WIDTH = 8, 4096
PARAMETERS = LAYERS * (WIDTH * WIDTH + WIDTH) * 4
# cuBLAS gives each thread's handle 32 MiB on Hopper; cuBLASLt has 1 MiB of its own.
WORKSPACES = 2 * 32 * MIB + MIB


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    report = harness.analysis(FOLDER)
    (device,) = [one for one in report["devices"] if one["device"] == "cuda:0"]
    return device, report["driver"]["devices"][0]


def test_each_type_has_the_bytes_that_the_model_has(gpu):
    found = gpu[0]["categories_at_peak"]
    # Adam's step holds a temporary of each parameter's size.
    expected = {"parameter": PARAMETERS, "gradient": PARAMETERS, "optimizer state": 2 * PARAMETERS}
    expected |= {"temporary": PARAMETERS, "workspace": WORKSPACES}
    assert {name: value for name, value in found.items() if value} == expected


def test_every_address_is_replayed_and_the_drivers_segments_are_the_allocators(gpu):
    device, driver = gpu
    assert device["replay"]["matched"] == device["replay"]["alloc_addresses"] > 300
    framework = driver["end"]["framework"]
    assert framework["beside_bytes"] == 0
    assert framework["bytes"] == device["end"]["reserved_bytes"]
    assert [library["name"] for library in driver["end"]["libraries"]] == ["libcublas.so.13"]
