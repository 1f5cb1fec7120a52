"""Every allocation of a recorded TensorFlow program has the number of the step that it was made in."""
import collections

import pytest

import harness
from tensorflow_helpers import last_json, needs_tensorflow, of_tensorflow, operation, record

pytestmark = needs_tensorflow


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """What the program said, the events of its pool, and the analysis of that."""
    where = tmp_path_factory.mktemp("numbered")
    program = [harness.PYTHON, harness.PROGRAMS / "tf_numbered.py"]
    done = record(where / "recording", program)
    events = [e for e in of_tensorflow(harness.events(where / "recording")) if e["layer"] == "allocator"]
    (device,) = [d for d in harness.analysis(where / "recording")["devices"] if d["layer"] == "allocator"
                 and d["framework"] == "tensorflow"]
    return last_json(done), events, device


def asked(event):
    return event.get("requested_bytes", event["size_bytes"])


def of_call(events, call):
    """The events between the two tensors that mark a call."""
    sizes = [asked(e) if e["action"] == "alloc" else 0 for e in events]
    return events[sizes.index(call["mark"]) + 1:sizes.index(call["end"])]


def test_one_call_of_a_function_is_one_step_and_another_call_another(numbered):
    said, events, _ = numbered
    steps = []
    for call in said:
        fills = [e for e in of_call(events, call) if e["action"] == "alloc" and asked(e) in call["bytes"]]
        assert [asked(e) for e in fills] and sorted(map(asked, fills)) == sorted(call["bytes"])
        assert all("Fill" in operation(e) for e in fills)
        (step,) = {e["step"] for e in fills}
        steps.append(step)
    assert len(set(steps)) == len(said)


def test_every_allocation_with_an_operation_has_a_step_and_no_free_has_one(numbered):
    _, events, _ = numbered
    for event in events:
        assert ("step" in event) == (event["action"] == "alloc" and operation(event) != ""), event


def test_the_live_bytes_of_all_steps_are_those_of_get_memory_info(numbered):
    said, events, _ = numbered
    for call in said:
        of_step, blocks, is_after = collections.Counter(), {}, False
        for event in events:
            if event["action"] == "alloc":
                if is_after:
                    break
                blocks[event["address"]] = event.get("step"), event["size_bytes"]
                of_step[event.get("step")] += event["size_bytes"]
                is_after = asked(event) == call["end"]
            else:
                step, size = blocks.pop(event["address"])
                of_step[step] -= size
                if is_after and sum(of_step.values()) == call["current"]:
                    break
        assert sum(of_step.values()) == call["current"]
        # What the call returned is kept: its step has at least that.
        (step,) = {e["step"] for e in of_call(events, call) if e["action"] == "alloc" and asked(e) in call["bytes"]}
        assert of_step[step] >= sum(call["bytes"])


def test_the_analysis_adds_them_up(numbered):
    _, events, device = numbered
    total, count, live, blocks = collections.Counter(), collections.Counter(), collections.Counter(), {}
    for event in events:
        if event["action"] == "alloc":
            step = event.get("step")
            total[step] += event["size_bytes"]
            count[step] += 1
            live[step] += event["size_bytes"]
            blocks[event["address"]] = step, event["size_bytes"]
        else:
            step, size = blocks.pop(event["address"])
            live[step] -= size
    steps = device["steps"]
    assert steps["count"] == len([s for s in total if s is not None])
    assert {s["step"]: (s["alloc_count"], s["alloc_bytes"], s["live_bytes"]) for s in steps["largest"]} == {
        s: (count[s], total[s], live[s]) for s in total if s is not None}
    assert steps["without_step"]["alloc_bytes"] == total[None]
    everything = [*steps["largest"], steps["other_steps"], steps["without_step"]]
    assert sum(s["live_bytes"] for s in everything) == device["end"]["allocated_bytes"]
