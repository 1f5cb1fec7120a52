"""Categories over time with steps and phases marked: the sums against the exported events, the page against the JSON."""

import sys
from pathlib import Path

import harness
import nested
import pytest
from carried_page import CarriedPage

pytest.importorskip("torch")

PROGRAM = Path(__file__).resolve().parent / "programs" / "phases_known.py"
PARAMETERS, DATA, RESULT = 4 * (256 * 512 + 512), 4 * 64 * 256, 4 * 64 * 512
STEPS = [("phase_begin", "forward is done"), ("phase_end", "forward is done"), ("step_end", None)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return nested.record(tmp_path_factory.mktemp("timeline") / "recording", [sys.executable, PROGRAM]).ok().folder


@pytest.fixture(scope="module")
def said(recording):
    return harness.analysis(recording)


def cpu(said):
    return next(d for d in said["devices"] if d["device"] == "cpu")


def live_after(events):
    """(time, bytes live from then on) of every event; before the first nothing is."""
    live, level, steps = {}, 0, []
    for event in events:
        if event["action"] == "alloc":
            level -= live.get(event["address"], 0)
            live[event["address"]] = event["size_bytes"]
            level += event["size_bytes"]
        elif event["action"] == "free_completed":
            level -= live.pop(event["address"], 0)
        steps.append((event["time_ns"], level))
    return steps


def column_sums(columns, count):
    assert {len(column) for column in columns.values()} == {count}
    return [sum(values) for values in zip(*columns.values())]


def test_the_moments_are_those_of_the_program_in_its_order(said):
    def phase(name, inside):
        return [("phase_begin", name), *inside, ("phase_end", name)]

    expected = [*phase("warm-up", STEPS), *phase("training <& more>", STEPS) * 2, *phase("evaluation", [])]
    assert [(m["kind"], m["phase"]) for m in said["moments"]] == expected
    assert [m["step"] for m in said["moments"] if m["kind"] == "step_end"] == [0, 1, 2]
    times = [m["time_ns"] for m in said["moments"]]
    assert times == sorted(times)


def test_at_each_moment_the_categories_are_what_was_live_and_of_the_programs_sizes(said, recording):
    moments, columns = said["moments"], cpu(said)["categories_at_moments"]
    after = live_after(harness.events(recording))
    live = [after[m["event_index"] - 1][1] if m["event_index"] else 0 for m in moments]
    assert column_sums(columns, len(moments)) == live
    at = {(m["kind"], m["phase"]): i for i, m in enumerate(moments)}  # of each the last
    forward, end = at["phase_begin", "forward is done"], at["step_end", None]
    assert columns["parameter"] == [PARAMETERS] * len(moments)
    assert columns["input"][forward] == DATA and columns["activation"][forward] == RESULT
    assert columns["gradient"][forward] == 0 and columns["gradient"][end] == PARAMETERS
    assert columns["optimizer state"][forward] == columns["optimizer state"][end] == PARAMETERS
    assert columns["activation"][end] == 0


def test_each_sample_is_what_was_live_at_its_time(said, recording):
    timeline = cpu(said)["category_timeline"]
    sums = column_sums(timeline["bytes"], timeline["samples"])
    after = live_after(harness.events(recording))
    assert timeline["samples"] >= 256
    for number, found in enumerate(sums):
        time_ns = timeline["start_ns"] + number * timeline["sample_ns"]
        assert found == next((level for at, level in reversed(after) if at <= time_ns), 0), number


def test_the_page_marks_steps_and_phases_where_the_json_has_them(said, recording, tmp_path):
    path = tmp_path / "page.html"
    harness.execute([harness.COMMAND, "analyze", recording, "--output", path]).ok()
    page = CarriedPage(path.read_text())
    (index,) = [i for i, device in enumerate(page.files[0]["devices"]) if device["is_main"]]
    # Of the device's own events: how many came before a moment of the program.
    times = [event["time_ns"] for event in harness.events(recording) if event["action"] in ("alloc", "free_completed")]
    assert page.files[0]["devices"][index]["events"] == len(times)

    def event_at(moment):
        return sum(time < moment["time_ns"] for time in times)

    header, columns = page.ask("marks", device=index, file=0)
    marks = list(zip((header["kinds"][kind] for kind in columns["kind"]), columns["event"], columns["end"], (header["labels"][at] for at in columns["label"])))
    ends = [event_at(m) for m in said["moments"] if m["kind"] == "step_end"]
    assert [event for kind, event, _, _ in marks if kind == "step end"] == ends and len(ends) == 3
    expected, open_at = [], {}
    for moment in said["moments"]:
        if moment["kind"] == "phase_begin":
            open_at[moment["phase"]] = event_at(moment)
        elif moment["kind"] == "phase_end":
            expected.append((moment["phase"], open_at.pop(moment["phase"]), event_at(moment)))
    phases = [(name, begin, end) for kind, begin, end, name in marks if kind == "phase"]
    assert sorted(phases) == sorted(expected) and len(phases) > 3
    levels, _ = page.ask("levels", by="category", columns=2048, device=index, file=0, **{"from": 0, "to": len(times) + 1})
    shown = {key["label"] if isinstance(key, dict) else key for key in levels["keys"]}
    assert {name for name, column in cpu(said)["category_timeline"]["bytes"].items() if any(column)} <= shown
