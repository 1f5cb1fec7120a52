"""What the program itself told of its memory is in the page at every moment, as `analyze` has it."""

import os
import sys

import harness
import nested
import pytest
import runs

pytest.importorskip("torch")

PROGRAM = harness.ROOT / "tests" / "categories" / "programs" / "mlp.py"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "recording"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    nested.record(folder, [sys.executable, PROGRAM], env=environment, timeout=300).ok()
    return folder


def test_categories_and_modules_are_those_of_analyze(recording, view):
    report = runs.device_of(runs.analysis(recording), "cpu")
    page = view(recording)
    devices = page.run()["files"][0]["devices"]
    index = next(i for i, device in enumerate(devices) if device["name"] == "cpu")
    event = devices[index]["peak"]["event"]
    assert devices[index]["peak"]["bytes"] == runs.peak_bytes(report)
    header, columns = page.ask("levels", device=index, columns=1, **{"from": event, "to": event + 1})
    told = {key["label"]: bytes for key, bytes in zip(header["keys"], columns["values"]) if bytes}
    assert told == {name: bytes for name, bytes in report["categories_at_peak"].items() if bytes}
    assert len(told) > 3

    header, columns = page.ask("levels", device=index, columns=1, by="module", **{"from": event, "to": event + 1})
    told = {key["id"]: bytes for key, bytes in zip(header["keys"], columns["values"]) if bytes}
    groups = report["by_module_at_peak"]
    assert told == {group["module"] or "": group["bytes"] for group in groups}


def test_categories_at_the_end_of_each_step_are_those_of_analyze(recording, view):
    report = runs.analysis(recording)
    device = runs.device_of(report, "cpu")
    page = view(recording)
    devices = page.run()["files"][0]["devices"]
    index = next(i for i, device in enumerate(devices) if device["name"] == "cpu")
    header, marks = page.ask("marks", device=index)
    steps = [event for event, kind in zip(marks["event"], marks["kind"]) if header["kinds"][kind] == "step end"]
    told = [i for i, moment in enumerate(report["moments"]) if moment["kind"] == "step_end"]
    assert len(steps) == len(told) > 1
    for event, moment in zip(steps, told):
        header, columns = page.ask("levels", device=index, columns=1, **{"from": event, "to": event + 1})
        here = {key["label"]: bytes for key, bytes in zip(header["keys"], columns["values"]) if bytes}
        there = {name: column[moment] for name, column in device["categories_at_moments"].items() if column[moment]}
        assert here == there


def test_a_lifetime_in_steps_is_the_ends_of_steps_within_it(recording, view):
    page = view(recording)
    devices = page.run()["files"][0]["devices"]
    index = next(i for i, device in enumerate(devices) if device["name"] == "cpu")
    header, marks = page.ask("marks", device=index)
    steps = [event for event, kind in zip(marks["event"], marks["kind"]) if header["kinds"][kind] == "step end"]

    def blocks(**filter):
        columns = page.ask("blocks", device=index, limit=100_000, **filter)[1]
        lives = zip(columns["id"], columns["start"], columns["end"])
        return {block: sum(start <= step < end for step in steps) for block, start, end in lives}

    ends = blocks()
    assert len(set(ends.values())) > 1
    for text, holds in (("lived>1step", lambda n: n > 1), ("lived=0steps", lambda n: n == 0),
                        ("not lived>=2steps", lambda n: n < 2)):  # fmt: skip
        assert blocks(filter=text) == {block: n for block, n in ends.items() if holds(n)}, text


def test_threads_are_named(recording, view):
    page = view(recording)
    run = page.run()["files"][0]
    header, columns = page.ask("levels", by="thread", columns=1)
    assert {key["label"] for key in header["keys"]} <= {thread["label"] for thread in run["threads"]}


def test_a_peak_among_events_that_were_dropped_is_told_and_not_shown(tmp_path, view):
    program = tmp_path / "dropped.py"
    program.write_text("import torch\nkept = [torch.empty(1000) for _ in range(500)]\n"
                       "for i in range(400_000):\n    kept[i % 500] = torch.empty(100 + i % 397)\n")  # fmt: skip
    folder = tmp_path / "recording"
    harness.record(folder, [sys.executable, program], ["--max-disk", "1MiB"], timeout=300).ok()
    report = runs.device_of(runs.analysis(folder), "cpu")
    page = view(folder)
    device = page.run()["files"][0]["devices"][0]
    if device["events"] == sum(report["events"].values()):
        pytest.skip("nothing was dropped, so this proves nothing")
    assert device["whole_peak_bytes"] == runs.peak_bytes(report) > device["peak"]["bytes"]
    assert {"peak", "before"} <= {unknown["what"] for unknown in device["unknown"]}
    assert device["end_bytes"] == report["end"]["requested_bytes"]
    header, columns = page.ask("levels", by="category", columns=100)
    width = len(columns["event"])
    sums = [sum(columns["values"][k * width + i] for k in range(len(header["keys"]))) for i in range(width)]
    assert sums == columns["total"]
