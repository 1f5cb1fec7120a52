"""What a program tells of itself through the C API, as it stands in the recording."""
import json
import os
from pathlib import Path

import pytest

import harness
import nested
from probe import exact
from probe.raw_records import Raw

PROGRAM = Path(__file__).parent / "marks_programs.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")

    def run(name, *, files=1):
        before = harness.files(folder)
        env = {**os.environ, "LD_PRELOAD": exact.library(), "GPUMEMPROF_DIR": str(folder)}
        done = nested.execute([harness.PYTHON, PROGRAM, name], env=env).ok()
        found = [Raw(file) for file in harness.files(folder) if file not in before]
        assert len(found) == files
        return json.loads(done.stdout), *found

    return run


def phase_of(raw):
    """size -> the phase in its stack."""
    found = {}
    for event in raw.events:
        if event["action"] == "alloc" and 1000 <= event["size_bytes"] < 1100:
            names = [frame.removeprefix("<phase> ") for frame in event["stack"] if frame.startswith("<phase> ")]
            assert len(names) <= 1 and event["size_bytes"] not in found
            found[event["size_bytes"]] = names[0] if names else None
    return found


def test_what_a_thread_allocates_carries_its_innermost_open_phase(recorded):
    (outer, inner, again, unrecorded), raw = recorded("phases")
    assert phase_of(raw) == {1000: None, 1001: "training", 1002: "prüfen", 1003: None, 1004: "prüfen", 1005: None,
                             1006: "training"}
    assert len({outer, inner, again}) == 3 and 0 not in (outer, inner, again) and unrecorded == 0
    marks = sorted((m for m in raw.marks if m["kind"].startswith("phase")), key=lambda m: m["time_ns"])
    assert [(m["kind"], m["address"], m["text"]) for m in marks] == [
        ("phase_begin", outer, "training"), ("phase_begin", inner, "prüfen"), ("phase_end", outer, None),
        ("phase_end", inner, None), ("phase_begin", again, "training"), ("phase_end", again, None)]
    assert marks[3]["stream"] != marks[0]["stream"]  # it was ended on another thread


def test_phases_too_deep_to_name_leave_none_and_never_a_wrong_one(recorded):
    different, raw = recorded("deep")
    assert different == 20
    assert phase_of(raw) == {1001: None, 1002: "p2", 1003: None}
    assert [m["text"] for m in raw.marks if m["kind"] == "phase_begin"] == [f"p{i}" for i in range(20)]
    assert len([m for m in raw.marks if m["kind"] == "phase_end"]) == 20


def test_a_forked_child_has_neither_the_phases_nor_the_steps_of_its_parent(recorded):
    child, *both = recorded("forked", files=2)
    both.sort(key=lambda raw: len(raw.marks))
    of_child, of_parent = both
    assert phase_of(of_child) == {1002: None, 1003: None}
    assert [(m["kind"], m["value"]) for m in of_child.marks] == [("step", 0)]
    assert phase_of(of_parent) == {1001: "of the parent", 1004: "of the parent"}
    assert [m["kind"] for m in of_parent.marks] == ["step", "phase_begin", "phase_end", "step"]
    assert [m["value"] for m in of_parent.marks if m["kind"] == "step"] == [0, 1]


def test_roles_names_and_steps_are_written_as_they_were_said(recorded):
    (weight, module), raw = recorded("roles")
    assert [(m["kind"], m["address"], m["value"], m["text"]) for m in raw.marks] == [
        ("role", weight, 1, "encoder.weight"), ("role", weight, 4, None),
        ("module", module, 0, "encoder.act"), ("module", module, 0, "x" * 999),
        ("step", 0, 0, None), ("step", 0, 1, None), ("step", 0, 2, None)]
    (place,) = [i for i, e in enumerate(raw.events) if e["address"] == weight and e["action"] == "alloc"]
    assert raw.events[place]["time_ns"] < raw.marks[0]["time_ns"]


def test_the_call_for_new_modules_is_made_once_for_each_time_it_is_asked_for(recorded):
    said, _ = recorded("new_modules")
    assert said == {"counts": [0, 1, 1, 1, 2, 3, 3], "main": True}
