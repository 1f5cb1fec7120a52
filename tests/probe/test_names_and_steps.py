"""What the Python half of the probe tells a recording, against what the program itself knows of its model."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

import harness
import nested
from probe import exact
from probe.raw_records import Raw

PROGRAM = Path(__file__).parent / "named_programs.py"
ROLES = {1: "parameter", 2: "buffer", 3: "gradient", 4: "optimizer state"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """recorded(NAME): what the program printed, and what the probe wrote that nobody sealed."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("recording")
    env = {**os.environ, "LD_PRELOAD": exact.library(), "GPUMEMPROF_DIR": str(folder)}

    def run(name):
        before = harness.files(folder)
        done = nested.execute([harness.PYTHON, PROGRAM, name], env=env, timeout=300).ok()
        (file,) = [path for path in harness.files(folder) if path not in before]
        return done.printed(), Raw(file)

    return run


def storages(marks):
    """Address by role and name, of what was told and not taken back; of what was told more than once, the last."""
    told = {}
    for mark in marks:
        if mark["kind"] == "role" and mark["address"]:
            told.pop(mark["address"], None)
            told |= {mark["address"]: f"{ROLES[mark['value']]} {mark['text']}"} if mark["value"] else {}
    return {name: address for address, name in told.items()}


def until(parts, step):
    """All marks before the end of a step."""
    return [mark for part in parts[: step + 1] for mark in part]


def told_in(part):
    """The roles that were told or taken back."""
    return {mark["value"] for mark in part if mark["kind"] == "role" and mark["address"]}


def holds(part):
    """How often it was said that what was told holds."""
    return sum(mark["kind"] == "role" and mark["address"] == 0 and mark["value"] == 0 for mark in part)


def modules(raw):
    return {f"{m['address']:x}": m["text"] for m in raw.marks if m["kind"] == "module" and m["text"]}


def by_step(raw):
    """The marks between the ends of steps."""
    parts = [[]]
    for mark in raw.marks:
        parts[-1].append(mark)
        if mark["kind"] == "step":
            parts.append([])
    return parts


def test_every_storage_has_the_name_that_pytorch_gives_it(recorded):
    (said,), raw = recorded("tied")
    first = by_step(raw)[0]
    assert storages(first) == said["storages"]
    assert len(said["storages"]) > 60
    # The weight that two layers share has one name, and what needs no gradient has none.
    assert not any(name.endswith("head.weight") or name.endswith("again.bias") for name in said["storages"])
    assert "gradient layers.0.linear1.weight" not in said["storages"]
    later = by_step(raw)[1:-1]
    assert all(told_in(part) <= {0, 3} for part in later)  # nothing changed but that gradients are others
    assert [holds(part) for part in by_step(raw)[:-1]] == [1] * (1 + len(later))


def test_what_a_model_holds_itself_is_called_by_its_class_as_what_it_makes(recorded):
    (said,), raw = recorded("bare")
    assert modules(raw) == said["modules"]
    own = {re.sub(r"(weight|bias)$", r"Linear.\1", name): address for name, address in said["storages"].items()}
    assert storages(by_step(raw)[0]) == own and len(own) == 10


def test_of_a_view_it_is_the_storage_that_is_told(recorded):
    (said,), raw = recorded("flat")
    assert said["offsets"] == [0, 0, 64, 64]
    told = {(ROLES[m["value"]], m["address"]) for m in raw.marks if m["kind"] == "role" and m["value"] and m["address"]}
    assert told == {("parameter", said["storages"]["parameter Sequential.1.weight"]), ("gradient", said["storages"]["gradient"])}


def test_state_that_is_made_late_or_loaded_is_told_again_and_nothing_else_is(recorded):
    said, raw = recorded("changes")
    parts = by_step(raw)
    assert storages(parts[0]) == said[0]["storages"]
    assert all(told_in(part) <= {0, 3} for part in parts[1:4])
    late = storages(until(parts, 4))
    assert late == said[1]["storages"]
    assert len([name for name in late if name.startswith("optimizer state")]) == 12
    loaded = storages(until(parts, 5))
    assert loaded == said[2]["storages"]


def test_wrappers_are_not_in_the_names(recorded):
    (said,), raw = recorded("wrapped")
    assert storages(m for m in raw.marks if m["kind"] == "role" and m["value"] in (1, 2)) == said["storages"]
    assert set(modules(raw).values()) == {"Net", "inner"}


def test_two_models_a_loss_and_a_part_that_came_first_have_names_of_their_own(recorded):
    said, raw = recorded("roots")
    assert modules(raw) == said[0]["modules"] | said[1]["modules"]


def test_parts_that_a_loop_calls_have_the_names_that_their_model_gives_them(recorded):
    (said,), raw = recorded("parts")
    # The list is called by nobody, and named all the same.
    assert modules(raw) == said["modules"]
    told = storages(raw.marks)
    assert {name: told[name] for name in said["storages"]} == said["storages"]


def test_a_model_that_calls_a_part_of_itself_while_it_is_set_up_has_one_name(recorded):
    (said,), raw = recorded("measured_in_setup")
    assert storages(raw.marks) == said["storages"]
    assert modules(raw) == said["modules"]


def test_state_and_gradients_get_the_name_that_their_parameter_has_now(recorded):
    (before, said), raw = recorded("taken_in")
    first, last = storages(by_step(raw)[0]), storages(raw.marks)
    assert first["parameter Linear.weight"] == before["weight"]
    assert "optimizer state exp_avg of Linear.weight" in first and "gradient Linear.weight" in first
    assert last == said["storages"]


def test_a_module_in_the_place_of_a_dead_one_has_its_own_name(recorded):
    said, raw = recorded("died")
    told = [(f"{m['address']:x}", m["text"]) for m in raw.marks if m["kind"] == "module"]
    for model in said:
        living, told = told[:2], told[2:]
        assert dict(living) == model["modules"]
        dead, told = told[:2], told[2:]
        assert dict(dead) == dict.fromkeys(model["modules"], "")
    assert told == []


@pytest.mark.parametrize(
    "name",
    [
        "gan", "critics", "one_after_another", "one_after_another_kept", "gans_kept", "accumulated", "scaled", "closures",
        "compiled_steps", "own_steps",
    ],
)
def test_steps_are_those_of_the_programs_loop(recorded, name):
    (said,), raw = recorded(name)
    steps = [m["value"] for m in raw.marks if m["kind"] == "step"]
    assert steps == list(range(said["steps"]))


def test_what_is_allocated_in_a_phase_has_its_name(recorded):
    (said,), raw = recorded("phases")
    assert said["values"] == [2, 1, "sent", 5, 0, 1]
    names = {
        e["size_bytes"]: next((f.removeprefix("<phase> ") for f in e["stack"] if f.startswith("<phase> ")), None)
        for e in raw.events
        if e["action"] == "alloc" and 1000 < e["size_bytes"] < 1060
    }
    assert names == {
        1001: "outer", 1002: "inner", 1003: "outer", 1004: None, 1005: None, 1006: "function", 1007: "generator",
        1008: "generator", 1009: "coroutine", 1010: "coroutine", 1011: "asynchronous generator",
        1012: "asynchronous generator", 1013: None, 1014: None,
        1021: "one", 1022: "one", 1031: "two", 1032: "two",
        1041: "inside", 1042: "main", 1043: "around", 1050: "(no name)", 1051: "?n", 1052: "?", 1053: "a?b",
    }  # fmt: skip
    begun = Counter(m["address"] for m in raw.marks if m["kind"] == "phase_begin")
    assert begun == Counter(m["address"] for m in raw.marks if m["kind"] == "phase_end")
