"""What changed between two steps of one run: a program that keeps one known tensor in step 9."""
import collections
import json

import harness
import nested
import pytest
from carried_page import CarriedPage
from recorded_steps import Replay, line_of, record_steps, size_of
from schema_test import validator

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record_steps(tmp_path_factory.mktemp("diff-steps"))


def diff(*argv):
    return harness.execute([harness.COMMAND, "diff", *argv])


@pytest.fixture(scope="module")
def document(recording):
    return json.loads(diff(recording, "--steps", "7", "12", "--format", "json").ok().stdout)


@pytest.fixture(scope="module")
def replay(recording):
    moments = harness.analysis(recording)["moments"]
    return Replay(harness.events(recording), [m["event_index"] for m in moments if m["kind"] == "step_end"])


def test_it_follows_the_schema_of_diff(document):
    validator("diff.schema.json").validate(document)


def test_the_kept_tensor_is_all_that_changed(document):
    assert document["peak"]["delta_bytes"] == document["end"]["delta_bytes"] == 3_000_000
    changed = [row for row in document["by_stack"] if row["delta_bytes"]]
    assert [row["delta_bytes"] for row in changed] == [3_000_000]
    assert document["by_stack"][0] == changed[0], "the largest change comes first"
    assert changed[0]["change"] == "appeared"
    assert any("steps_known.py" in frame for frame in changed[0]["stack"])
    assert [r["delta_bytes"] for r in document["by_category"] if r["delta_bytes"]] == [3_000_000]
    assert [(r["module"], r["delta_bytes"]) for r in document["by_module"] if r["delta_bytes"]] == [(None, 3_000_000)]


def test_every_row_is_what_the_events_say(document, replay):
    for side, step in (("a", 7), ("b", 12)):
        live = replay.ends[step]
        assert document[side]["peak_bytes"] == document[side]["end_bytes"] == size_of(live)
        moment = document[side]["moment"]
        assert (moment["step"], moment["step_peak_bytes"]) == (step, replay.most[step])
        stacks = collections.Counter()
        for event in live.values():
            stacks[tuple(event["stack"])] += event["size_bytes"]
        found = {tuple(r["stack"]): r[f"{side}_bytes"] for r in document["by_stack"] if r[f"{side}_bytes"]}
        assert found == dict(stacks)
        for rows in ("by_line", "by_function", "by_category", "by_module"):
            assert sum(row[f"{side}_bytes"] for row in document[rows]) == size_of(live), rows


def test_the_other_way_round_it_went(recording):
    said = json.loads(diff(recording, "--steps", "12", "7", "--format", "json").ok().stdout)
    assert said["by_stack"][0]["change"] == "vanished"
    assert said["by_stack"][0]["delta_bytes"] == -3_000_000


def test_a_step_of_each_of_two_runs(recording):
    said = json.loads(diff(recording, recording, "--steps", "7", "12", "--format", "json").ok().stdout)
    assert said["peak"]["delta_bytes"] == 3_000_000


def test_text_and_page(recording, replay, tmp_path):
    text = diff(recording, "--steps", "7", "12").ok().stdout.decode()
    lines = text.splitlines()
    assert lines[0].startswith("From the end of step 7 (A) to the end of step 12 (B) +2.86 MiB (")
    (event,) = [e for e in replay.ends[12].values() if e["size_bytes"] == 3_000_000]
    assert f"steps_known.py:{line_of(event).line} train" in lines[2]
    assert "By category" in text and "By module" in text and "at the peak" not in text
    page = tmp_path / "diff.html"
    diff(recording, "--steps", "7", "12", "-o", page).ok()
    shown = CarriedPage(page.read_text())
    assert lines[0] in shown.text.split("\n")
    places = dict(part.split("=") for part in shown.data["start"].split("&"))
    header, tree = shown.ask("compare", by="category", device=places["device"], event=places["at_a"], file=0, other=0,
                             other_device=places["other_device"], other_event=places["at_b"])  # fmt: skip
    assert (header["total_a"], header["total_b"]) == (size_of(replay.ends[7]), size_of(replay.ends[12]))
    assert tree["bytes_b"][0] - tree["bytes_a"][0] == 3_000_000


@pytest.mark.parametrize(("argv", "why"), [
    (("--steps", "7", "40"), "step 40 is not complete in it; the last complete one is step 39"),
    (("--steps", "7"), "--steps"),
    ((), "give a second run, or two steps of one run: --steps A B"),
])
def test_wrong_use_is_one_line_and_2(recording, argv, why):
    done = diff(recording, *argv)
    assert (done.rc, done.stdout) == (2, b"")
    assert why in done.stderr.decode() and done.stderr.count(b"\n") == 1


def test_a_run_without_steps(tmp_path):
    program = tmp_path / "plain.py"
    program.write_text("import torch\nkept = torch.ones(1000)\n")
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program]).ok().folder
    done = diff(folder, "--steps", "0", "1")
    assert done.rc == 2 and done.stderr.decode() == (
        f"gpumemprof: {folder}: it has no steps; a step ends when an optimizer steps or the program calls "
        "gpumemprof.step(); rounds of a loop, which analyze finds by itself, are no steps\n"
    )
