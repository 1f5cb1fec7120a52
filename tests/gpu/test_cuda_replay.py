"""Replay and what-if on a real GPU's addresses, and a run with the setting to confirm it. Part of `make gpu-test`."""

import json
import os
import sys

import harness
import pytest
from test_cuda_recording import cuda  # noqa: F401

pytestmark = pytest.mark.gpu

# Sizes that differ from step to step, so that settings matter.
PROGRAM = """
import json, random, sys, torch
if len(sys.argv) > 1:
    torch.cuda.memory._record_memory_history(max_entries=1_000_000)
chance = random.Random(5)
kept = []
for _ in range(400):
    kept.append(torch.empty(chance.randrange(1, 40 << 20), dtype=torch.uint8, device="cuda"))
    if len(kept) > 30:
        del kept[chance.randrange(len(kept))]
if len(sys.argv) > 1:
    torch.cuda.memory._dump_snapshot(sys.argv[1])
print(json.dumps([torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()]))
"""
SETTINGS = ("roundup_power2_divisions:4", "max_split_size_mb:32", "expandable_segments:True")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, cuda):  # noqa: F811
    folder = tmp_path_factory.mktemp("replay")
    (folder / "program.py").write_text(PROGRAM)
    argv = [sys.executable, folder / "program.py", folder / "own.pickle"]
    done = harness.record(folder / "recording", argv, timeout=120).ok()
    return folder, done.printed()[0]


def whatif(path, *options):
    done = harness.execute([harness.COMMAND, "whatif", path, "--format", "json", *options], timeout=120).ok()
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", ["recording", "own.pickle"])
def test_every_address_of_our_recording_and_of_pytorchs_snapshot_is_replayed(recorded, what, record_property):
    replay = whatif(recorded[0] / what)["replay"]
    record_property("matched", f"{replay['matched']} of {replay['alloc_addresses']}")
    assert replay["alloc_addresses"] == replay["matched"] == 400


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_if_is_confirmed_by_a_run_with_the_setting(recorded, settings, record_property):
    folder, was = recorded
    told = whatif(folder / "recording", "--set", settings)["results"][-1]
    env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=settings)
    argv = [sys.executable, folder / "program.py", folder / f"{settings.partition(':')[0]}.pickle"]
    is_, _ = json.loads(harness.execute(argv, env=env, timeout=120).ok().stdout)
    record_property("peak_reserved_bytes", f"{was[0]} -> {is_}, told {told['peak_reserved_bytes']}")
    assert told["peak_reserved_bytes"] == is_
