"""Flame graphs by stack, module and category, at the peak, at any moment and at the end: their sums are those of the events."""
import collections
import json
import re

import harness
import nested
import pytest
from carried_page import CarriedPage, has_no_network
from recorded_steps import Replay, record_steps, size_of

pytest.importorskip("torch")
GROUPINGS = ("stack", "module", "category")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record_steps(tmp_path_factory.mktemp("flames"))


@pytest.fixture(scope="module")
def said(recording):
    return harness.analysis(recording)


@pytest.fixture(scope="module")
def events(recording):
    return harness.events(recording)


@pytest.fixture(scope="module")
def replay(events, said):
    return Replay(events, [m["event_index"] for m in said["moments"] if m["kind"] == "step_end"])


def export(recording, *argv):
    return harness.execute([harness.COMMAND, "export", recording, *argv])


def folded(recording, *argv):
    """{path: bytes}."""
    text = export(recording, "--to", "folded", *argv).ok().stdout.decode()
    rows = [line.rsplit(" ", 1) for line in text.splitlines()]
    paths = collections.Counter()
    for path, size in rows:
        paths[tuple(path.split(";"))] += int(size)
    return paths


def live_after(events, time_ns):
    live = {}
    for event in events:
        if event["time_ns"] > time_ns:
            break
        if event["action"] == "alloc":
            live[event["address"]] = event
        elif event["action"] == "free_completed":
            live.pop(event["address"], None)
    return live


@pytest.mark.parametrize("by", GROUPINGS)
def test_each_grouping_has_every_byte_of_each_moment(recording, replay, by):
    assert sum(folded(recording, "--by", by).values()) == replay.peak_bytes
    assert sum(folded(recording, "--by", by, "--at", "end").values()) == size_of(replay.at_end)
    assert sum(folded(recording, "--by", by, "--at", "last-alloc").values()) == size_of(replay.after_last_allocation)
    for step in (0, 7, 39):
        assert sum(folded(recording, "--by", by, "--at", f"step:{step}").values()) == size_of(replay.ends[step])


@pytest.mark.parametrize("by", GROUPINGS)
def test_at_a_time_after_the_start(recording, said, events, by):
    start = said["source"]["start_ns"]
    middle = (events[0]["time_ns"] + events[-1]["time_ns"]) // 2
    found = folded(recording, "--by", by, "--at", f"{middle - start}ns")
    assert sum(found.values()) == size_of(live_after(events, middle))


def test_stacks_are_those_of_the_events(recording, replay):
    wanted = collections.Counter()
    for event in replay.ends[7].values():
        names = []
        for frame in reversed(event["stack"]):
            match = harness.FRAME.match(frame)
            file, line, function = (match["file"], match["line"], match["function"]) if match else ("", "", "")
            names.append(f"{function} ({file.rsplit('/', 1)[-1]}:{line})" if match else frame)
        wanted[len(names)] += event["size_bytes"]
    found = collections.Counter()
    for path, size in folded(recording, "--at", "step:7").items():
        found[len(path)] += size
    assert found == wanted


def test_modules_and_categories_are_those_of_the_report(recording, said):
    (device,) = [d for d in said["devices"] if d["device"] == "cpu"]
    categories = collections.Counter()
    for path, size in folded(recording, "--by", "category").items():
        categories[path[0]] += size
    assert categories == {k: v for k, v in device["categories_at_peak"].items() if v}
    modules = collections.Counter()
    for path, size in folded(recording, "--by", "module").items():
        modules[".".join(path[:2]) if path[0] == "Sequential" else path[0]] += size
    wanted = {g["module"] or "(outside of any module)": g["bytes"] for g in device["by_module_at_peak"]}
    assert modules == wanted, "this model's modules have paths of two parts"
    paths = folded(recording, "--by", "module")
    assert paths[("Sequential", "0", "parameter", "Sequential.0.weight")] == 256 * 512 * 4


@pytest.mark.parametrize("by", GROUPINGS)
def test_speedscope_has_the_same(recording, replay, by):
    profile = json.loads(export(recording, "--to", "speedscope", "--by", by, "--at", "step:7").ok().stdout)
    (one,) = profile["profiles"]
    assert sum(one["weights"]) == one["endValue"] == size_of(replay.ends[7])
    assert one["name"].startswith("at the end of step 7")
    names = [f["name"] for f in profile["shared"]["frames"]]
    assert all(0 <= frame < len(names) for sample in one["samples"] for frame in sample)


def holds(page, device, event, wanted):
    for grouping in GROUPINGS:
        _, tree = page.ask("holders", by=grouping, device=device, event=event, file=0)
        assert tree["bytes"][0] == wanted, "the root is the whole"
        assert sum(tree["self_bytes"]) == wanted, "and every byte is some node's own"


def test_the_page_has_all_three_at_the_peak_and_what_survived(recording, replay, tmp_path):
    path = tmp_path / "report.html"
    harness.execute([harness.COMMAND, "analyze", recording, "-o", path]).ok()
    page = CarriedPage(path.read_text())
    (index,) = [i for i, device in enumerate(page.files[0]["devices"]) if device["is_main"]]
    device = page.files[0]["devices"][index]
    holds(page, index, device["peak"]["event"], replay.peak_bytes)
    holds(page, index, device["events"], size_of(replay.at_end))
    has_no_network(page)


@pytest.mark.parametrize("at", ["step:7", "last-alloc", "end"])
def test_a_page_of_a_chosen_moment(recording, replay, at):
    page = CarriedPage(export(recording, "--to", "html", "--at", at).ok().stdout)
    start = dict(part.split("=") for part in page.data["start"].split("&"))
    assert int(start["moment"]) in page.data["moments"]
    wanted = {"step:7": replay.ends[7], "last-alloc": replay.after_last_allocation, "end": replay.at_end}
    holds(page, start["device"], start["moment"], size_of(wanted[at]))


@pytest.mark.parametrize(("argv", "why"), [
    (("--to", "folded", "--at", "noon"), "'noon' is not a moment"),
    (("--to", "folded", "--at", "step:x"), "'step:x' is not a moment"),
    (("--to", "folded", "--at", "-1s"), "'-1s' is not a moment"),
    (("--to", "folded", "--at", "99999s"), "its last event is"),
    (("--to", "folded", "--at", "step:99"), "the last complete one is step 39"),
    (("--to", "folded", "--at", "total", "--by", "module"), "only by stack"),
    (("--to", "jsonl", "--at", "peak"), "--at goes with"),
    (("--to", "pprof", "--by", "module"), "--by goes with"),
])
def test_wrong_use_is_one_line_and_2(recording, argv, why):
    done = export(recording, *argv)
    assert done.rc == 2 and why in done.stderr.decode() and done.stderr.count(b"\n") == 1, done


def test_what_is_not_known_is_said(tmp_path):
    program = tmp_path / "plain.py"
    program.write_text("import torch\nkept = torch.ones(1000)\n")
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["--stacks", "none"]).ok().folder
    done = export(folder, "--to", "folded", "--by", "category")
    assert done.rc == 2 and b"by category: unknown, because" in done.stderr
