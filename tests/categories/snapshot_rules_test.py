"""The categories of a snapshot, which come from rules, against what is known otherwise.

Each program is recorded, with marks that say what a tensor is (categories_test.py holds those to PyTorch's own figures), and
the same run is written as the snapshot that PyTorch would have made of it: stacks and lives, and no mark. Where two stacks
hold one category in the recording, the snapshot must find it in these stacks.
"""

import functools
import json
import os
import shutil
import sys
from pathlib import Path

import jsonschema
import pytest
from carried_page import CarriedPage

pytest.importorskip("torch")

import harness  # noqa: E402
from categories import rebuilt  # noqa: E402

PROGRAMS = Path(__file__).resolve().parent / "programs"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SCHEMA = json.loads((harness.ROOT / "docs" / "schemas" / "analysis.schema.json").read_text())
OF_ONE_SIZE = {"buffer": "parameter"}  # no stack tells them apart


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """analysed(NAME): the recording's device, and its events."""

    @functools.cache
    def recorded(name):
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(PROGRAMS / "measured.py", folder)
        shutil.copy(PROGRAMS / f"{name}.py", folder)
        recording = folder / "recording"
        harness.record(recording, [sys.executable, folder / f"{name}.py"], env=ENVIRONMENT, timeout=300).ok()
        (device,) = [d for d in harness.analysis(recording)["devices"] if d["device"] == "cpu"]
        return device, [e for e in harness.events(recording) if e["device"] == "cpu"]

    return recorded


def by_stack(device):
    """{stack of code without lines and qualifiers: {category: bytes}} at the peak."""
    found = {}
    for holder in device["holders_at_peak"]:
        frames = rebuilt.frames_of(holder)
        stack = tuple((f["filename"], f["line"], f["name"]) for f in frames)
        categories = holder.get("categories") or {holder["category"]: holder["bytes"]}
        for category, size in categories.items():
            sums = found.setdefault(stack, {})
            category = OF_ONE_SIZE.get(category, category)
            sums[category] = sums.get(category, 0) + size
    return found


def shares(recorded, ruled, has_stacks):
    """Of the peak's bytes: those of the right category, of none, and of a wrong one."""
    total = recorded["peak"]["allocated_bytes"]
    assert ruled["peak"]["requested_bytes"] == total
    unknown = ruled["categories_at_peak"]["unknown"]
    if has_stacks:
        expected, found = by_stack(recorded), by_stack(ruled)
    else:
        expected = {(): merged(recorded["categories_at_peak"])}
        found = {(): merged(ruled["categories_at_peak"])}
    right = 0
    for stack, categories in found.items():
        for category, size in categories.items():
            if category != "unknown":
                right += min(size, expected.get(stack, {}).get(category, 0))
    return right / total, unknown / total, (total - right - unknown) / total


def merged(categories):
    out = {}
    for category, size in categories.items():
        category = OF_ONE_SIZE.get(category, category)
        out[category] = out.get(category, 0) + size
    return out


def ruled(folder, events, on_own_thread=False):
    path = rebuilt.write(folder / "snapshot.pickle", rebuilt.snapshot_of(events, on_own_thread))
    (device,) = harness.analysis(path)["devices"]
    assert sum(device["categories_at_peak"].values()) == device["peak"]["requested_bytes"]
    assert sum(device["category_confidence_at_peak"].values()) == device["peak"]["requested_bytes"]
    assert device["category_confidence_at_peak"]["none"] == device["categories_at_peak"]["unknown"]
    return device


QUICK = ("checkpointing", "generation", "transformer")
SLOW = ("accumulation", "autocast", "cnn", "factored", "frozen", "lstm", "mlp", "sgd_momentum", "tied")
NO_CASES = ("measured", "two_ranks")  # what the others import, and one of several processes


def cases():
    return [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


def test_every_program_is_a_case_or_said_to_be_none():
    assert sorted([*QUICK, *SLOW, *NO_CASES]) == sorted(path.stem for path in PROGRAMS.glob("*.py"))


@pytest.mark.parametrize("arguments", [[], ["ddp"], ["neither", "FOLDER"], ["fsdp", "/no/such/folder"],
                                       ["ddp", "FOLDER", "2"], ["ddp", "FOLDER", "x"], ["ddp", "FOLDER", "0", "1"]])  # fmt: skip
def test_the_program_of_several_processes_refuses_wrong_arguments(arguments, tmp_path):
    """Before it starts anything: without them it would start itself again and again."""
    arguments = [str(tmp_path) if word == "FOLDER" else word for word in arguments]
    done = harness.execute([sys.executable, PROGRAMS / "two_ranks.py", *arguments])
    assert done.rc == 2 and done.stderr.startswith(b"usage: two_ranks.py ddp|views|fsdp|flat FOLDER"), done
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", cases())
def test_a_snapshot_of_a_run_has_the_categories_of_its_recording(name, analysed, tmp_path):
    """Stack by stack; and once more as on a GPU, where backward has no Python frames, in the sum of each category."""
    recorded, events = analysed(name)
    for on_own_thread in (False, True):
        found = ruled(tmp_path, events, on_own_thread)
        right, unknown, wrong = shares(recorded, found, not on_own_thread)
        # The one with 0.2 % loses gradients, whose frees have no stack of their own here, to temporaries.
        assert right >= 0.998 and wrong <= 0.002 and unknown == 0, (on_own_thread, right, wrong)
        assert found["category_confidence_at_peak"]["low"] <= (0.32 if name == "generation" else 0.001) * sum(
            found["category_confidence_at_peak"].values())


def test_the_reports_say_how_sure_they_are(analysed, tmp_path):
    _, events = analysed("checkpointing")
    path = rebuilt.write(tmp_path / "snapshot.pickle", rebuilt.snapshot_of(events))
    jsonschema.Draft202012Validator(SCHEMA).validate(harness.analysis(path))
    text = harness.execute([harness.COMMAND, "analyze", path]).ok().stdout.decode()
    page = tmp_path / "page.html"
    harness.execute([harness.COMMAND, "analyze", path, "--output", page]).ok()
    for shown in (text, CarriedPage(page.read_text()).text):
        assert "Inferred from stacks and lifetimes; confidence: high 64.8 %, medium 35.2 %, " in shown
        assert "optimizer state: made in an optimizer" in shown
