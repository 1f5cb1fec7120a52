"""`analyze` of a snapshot says what the file says, and what PyTorch's own rules make of it."""

import collections
import itertools
import json
import pickle
import re
import shutil

import harness
import jsonschema
import pytest
import snapshots
from carried_page import CarriedPage, has_no_network
from snapshots import MIB

SCHEMA = json.loads((harness.ROOT / "docs" / "schemas" / "analysis.schema.json").read_text())


def device_of(analysis, device):
    (found,) = [d for d in analysis["devices"] if d["device"] == f"cuda:{device}"]
    return found


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    path = tmp_path_factory.mktemp("paper") / "oom.pickle"
    snapshots.on_paper(path)
    return path


def test_a_folder_with_one_snapshot_is_read_as_it(paper, tmp_path):
    shutil.copy(paper, tmp_path / "mine.pickle")
    (tmp_path / "notes.txt").write_text("not a snapshot")
    one, whole = (harness.analysis(path) for path in (paper, tmp_path))
    assert whole["devices"] == one["devices"]
    shutil.copy(paper, tmp_path / "other.pickle")
    refused = harness.execute([harness.COMMAND, "analyze", tmp_path, "--format", "json"])
    names = f"{tmp_path}/mine.pickle or {tmp_path}/other.pickle"
    assert refused.rc == 2 and f": holds 2 snapshots; give one: {names}\n" in refused.stderr.decode()


def test_of_several_snapshots_in_a_folder_each_ones_answer_is_told(paper, tmp_path):
    for name in ("rank0.pickle", "rank1.pickle"):
        shutil.copy(paper, tmp_path / name)
    (tmp_path / "rank2.pickle").write_bytes(paper.read_bytes()[:-9])
    said = harness.execute([harness.COMMAND, "analyze", tmp_path])
    answer = harness.execute([harness.COMMAND, "analyze", paper]).ok().stdout.decode().split("\n\n")[0].splitlines()
    first, second, _ = said.stdout.decode().split("\n\n")
    assert first.splitlines()[0] == f"{tmp_path}/rank0.pickle" and second.splitlines()[0] == f"{tmp_path}/rank1.pickle"
    assert answer[:2] == first.splitlines()[1:3] == second.splitlines()[1:3]
    assert said.rc == 2 and said.stderr.decode().startswith(f"gpumemprof: {tmp_path}/rank2.pickle: ")


@pytest.fixture(scope="module")
def real_analyses():
    known = {}

    def analysis(name):
        if name not in known:
            path = snapshots.real(name)
            known[name] = (snapshots.load(path), harness.analysis(path))
        return known[name]

    return analysis


def test_a_snapshot_on_paper_has_the_figures_of_the_paper(paper):
    analysis = harness.analysis(paper)
    jsonschema.Draft202012Validator(SCHEMA).validate(analysis)
    device = device_of(analysis, 0)
    assert device["peak"]["basis"] == "requested"
    assert device["peak"]["requested_bytes"] == device["peak"]["allocated_bytes"] == 20 * MIB
    assert device["peak"]["event_index"] == 9
    assert device["peak"]["time_us"] == 1_700_000_000_009_000
    assert device["peak_reserved"] == {"reserved_bytes": 36 * MIB, "event_index": 8, "time_us": 1_700_000_000_008_000}
    assert device["replay"]["alloc_addresses"] == device["replay"]["matched"] == 4
    assert device["replay"]["first_mismatch_event"] is None
    held = {holder["stack"][0]: holder["bytes"] for holder in device["holders_at_peak"]}
    assert held == {"/job/train.py:4 big": 16 * MIB, "/job/train.py:2 kept": 4 * MIB}
    pinned = device["fragmentation_at_peak"]
    assert (pinned["pinned_bytes"], pinned["pinned_segments"], pinned["cached_bytes"]) == (16 * MIB, 1, 0)
    assert pinned["largest_free_block_bytes"] == 12 * MIB
    assert [(p["alone_bytes"], p["live_bytes"], p["stack"]) for p in pinned["pinned_by"]] == [
        (16 * MIB, 4 * MIB, ["/job/train.py:2 kept"])]


def test_the_table_of_devices_tells_a_total_from_a_level(paper):
    text = harness.execute([harness.COMMAND, "analyze", paper]).ok().stdout.decode()
    header = text.split("\nDevices\n")[1].splitlines()[0]
    assert re.split(r"  +", header.strip()) == [
        "peak", "at end", "allocated in all", "allocations", "per second", "reserved", "device"]


def test_every_column_is_in_the_glossary(paper):
    rows = (harness.ROOT / "docs" / "glossary.md").read_text().split("| --- | --- |\n")[1].splitlines()
    terms = {term for row in rows for term in row.split("|")[1].strip().split(", ")}
    for command, first in (("analyze", "peak"), ("analyze", "this line alone"), ("whatif", "reserved")):
        text = harness.execute([harness.COMMAND, command, paper]).ok().stdout.decode()
        (header,) = [row for row in text.splitlines() if re.match(rf" +{first}  +\w", row)]
        columns = re.split(r"  +", header.strip())
        assert len(columns) > 4
        assert [column for column in columns if not {column, column.removesuffix("s")} & terms] == []


def test_what_was_cached_before_the_trace_is_told_beside_the_most_that_was_reserved():
    path = snapshots.real("forward_2_7b_torch26.pickle")
    events = snapshots.load(path)["device_traces"][0]
    released = sum(e["size"] for e in itertools.takewhile(lambda e: e["action"] == "segment_free", events))
    assert round(released / 2**30, 1) == 19.5
    text = " ".join(harness.execute([harness.COMMAND, "analyze", path]).ok().stdout.decode().split())
    assert (" cached. 19.5 GiB cached before the recording began were released by empty_cache() at benchmark.py:424. "
            "Replay:") in text


def test_what_causes_fragmentation_is_one_row_a_line():
    path = snapshots.real("forward_2_7b_torch26.pickle")
    text = harness.execute([harness.COMMAND, "analyze", path]).ok().stdout.decode()
    section = re.split("What causes fragmentation .*\n", text)[1].split("\n\n")[0].splitlines()
    (header,) = [i for i, row in enumerate(section) if row.startswith("  this line alone")]
    assert section[header].split("  ")[1:] == ["this line alone", "with other lines", "live bytes", "segments", "line"]
    lines = [row.split("  ")[-1] for row in section[header + 1:]]
    assert len(lines) == len(set(lines)) > 1


def test_an_out_of_memory_is_explained_with_the_setting_that_would_have_fitted(paper):
    (oom,) = device_of(harness.analysis(paper), 0)["oom"]
    assert oom["stack"] == ["/job/train.py:5 refused"]
    assert (oom["asked_bytes"], oom["device_free_bytes"], oom["reserved_bytes"]) == (32 * MIB, 24 * MIB, 36 * MIB)
    assert oom["device_bytes"] == 60 * MIB
    assert oom["cause"] == "fragmentation"  # 16 MiB inside and 24 MiB outside are more than 32
    assert (oom["free_inside_bytes"], oom["largest_free_block_bytes"]) == (16 * MIB, 12 * MIB)
    assert oom["free_for_request_bytes"] == 16 * MIB
    assert oom["largest_fit_bytes"] == 24 * MIB
    assert oom["is_reproduced"] and oom["more_bytes_needed"] == 8 * MIB
    assert oom["smallest_change"] == "expandable_segments:True"
    assert oom["held_by_others_bytes"] is None and "held_by_others_bytes" in oom["unknown"]


def test_the_answer_is_in_the_first_five_lines(paper):
    lines = harness.execute([harness.COMMAND, "analyze", paper]).ok().stdout.decode().splitlines()
    assert lines[0] == ("Out of memory: 32.0 MiB were refused at /job/train.py:5 refused, with 20.0 MiB live on cuda:0. The device "
                        "had 24.0 MiB left, and 16.0 MiB were free in its segments, the largest usable piece 12.0 MiB: fragmentation.")
    assert lines[1] == "It would have fitted with expandable_segments:True (simulated): 60.0 MiB reserved at most."
    assert lines[2] == "Peak 20.0 MiB on cuda:0 (requested bytes), 9 ms after the first event (event 10 of 11)"
    assert "train.py:4 big" in lines[3] and "train.py:2 kept" in lines[4]


def test_the_page_stands_alone_and_shows_the_segments(paper, tmp_path):
    path = tmp_path / "page.html"
    harness.execute([harness.COMMAND, "analyze", paper, "--output", path]).ok()
    page = CarriedPage(path.read_text())
    has_no_network(page)
    assert "expandable_segments:True" in page.text
    device = page.files[0]["devices"][0]
    _, space = page.ask("space", device=0, event=device["peak"]["event"], file=0)
    assert sum(space["block_bytes"]) == device["peak"]["bytes"] <= sum(space["segment_bytes"])
    _, levels = page.ask("levels", by="none", columns=2048, device=0, file=0, **{"from": 0, "to": device["events"] + 1})
    assert max(levels["total"]) == device["peak"]["bytes"] and max(levels["reserved"]) >= max(levels["total"])


def test_a_sum_that_the_segments_deny_is_called_inconsistent(tmp_path):
    data = snapshots.on_paper(tmp_path / "a.pickle")
    data["segments"][0]["allocated_size"] += 512
    path = tmp_path / "b.pickle"
    path.write_bytes(pickle.dumps(data, protocol=4))
    analysis = harness.analysis(path)
    device = device_of(analysis, 0)
    assert device["allocator"]["is_consistent"] is False
    assert device["peak"]["allocated_bytes"] is None and device["peak_reserved"]["reserved_bytes"] is None
    assert "inconsistent_trace" in {finding["kind"] for finding in analysis["findings"]}
    assert analysis["score"]["value"] is None
    assert analysis["score"]["reason"] == "the events and the segments contradict each other"


@pytest.mark.parametrize("name, index", snapshots.real_traces())
def test_figures_of_a_real_snapshot_are_those_of_a_plain_model(real_analyses, name, index):
    data, analysis = real_analyses(name)
    if name.startswith("inconsistent"):
        pytest.skip("its events deny each other: see the next test")
    device = device_of(analysis, index)
    trace = data["device_traces"][index]
    counts = collections.Counter(event["action"] for event in trace)
    assert {action: n for action, n in device["events"].items() if n} == counts
    peak = snapshots.requested_peak(data, index)
    assert (device["peak"]["requested_bytes"], device["peak"]["event_index"]) == peak
    assert device["peak"]["time_us"] == (trace[peak.event].get("time_us"))
    reserved = snapshots.reserved_peak(data, index)
    assert (device["peak_reserved"]["reserved_bytes"], device["peak_reserved"]["event_index"]) == reserved
    assert sum(holder["bytes"] for holder in device["holders_at_peak"]) == peak.bytes
    segments = [s for s in data["segments"] if s["device"] == index]
    end = device["end"]
    assert end["allocated_bytes"] == sum(s["allocated_size"] for s in segments)
    assert end["active_bytes"] == sum(s["active_size"] for s in segments)
    assert end["reserved_bytes"] == sum(s["total_size"] for s in segments)
    assert end["segments"] == len(segments)
    live = [b for s in segments for _, b in snapshots.blocks(s) if b["state"] != "inactive"]
    assert end["blocks"] == len(live)
    assert end["requested_bytes"] == sum(b["requested_size"] for b in live)
    assert device["allocator"]["is_consistent"], device["allocator"]["contradiction"]
    assert device["replay"]["alloc_addresses"] == device["replay"]["matched"] == counts["alloc"]
    assert device["peak_allocated"]["allocated_bytes"] >= device["peak"]["allocated_bytes"] >= peak.bytes


def test_a_snapshot_of_random_addresses_is_called_inconsistent(real_analyses):
    _, analysis = real_analyses("inconsistent_synthetic.pickle")
    device = device_of(analysis, 0)
    assert not device["allocator"]["is_consistent"]
    assert device["peak_allocated"]["allocated_bytes"] is None and "allocated_bytes" in device["unknown"]
    assert analysis["findings"][0]["kind"] == "inconsistent_trace"
    assert analysis["score"]["value"] is None


def test_the_real_out_of_memory_is_explained(real_analyses):
    _, analysis = real_analyses("expandable_oom_4gpu.pickle")
    (oom,) = device_of(analysis, 1)["oom"]
    assert (oom["asked_bytes"], oom["device_free_bytes"]) == (5308694528, 95682560)
    assert oom["device_bytes"] == oom["reserved_bytes"] + 95682560
    assert oom["cause"] == "want_of_memory"
    assert oom["missing_bytes"] == 5308694528 - 95682560 - (oom["reserved_bytes"] - oom["active_bytes"])


@pytest.mark.parametrize("name", ["bare_segment_list.pkl", "empty.pickle", "history_blocks_torch20.pickle",
                                  "history_blocks_torch20_oom.pickle", "no_history.pickle"])
def test_a_snapshot_without_history_says_what_cannot_be_known(real_analyses, name):
    data, analysis = real_analyses(name)
    jsonschema.Draft202012Validator(SCHEMA).validate(analysis)
    segments = data if isinstance(data, list) else data["segments"]
    assert sum(d["end"]["reserved_bytes"] for d in analysis["devices"]) == sum(s["total_size"] for s in segments)
    for device in analysis["devices"]:
        assert device["peak"]["event_index"] is None and "event_index" in device["unknown"]
        assert device["oom"] == []


def test_a_snapshot_against_itself_has_no_difference_and_no_modules():
    path = snapshots.real("snapshot_events_torch22.pickle")
    text = harness.execute([harness.COMMAND, "diff", path, path]).ok().stdout.decode()
    assert ("By line of your code, at the peak\n  No difference.\n\n"
            "By category, at the peak\n  No difference: 103 MiB in both.\n\n"
            "By module, at the peak\n  Unknown: a snapshot has no modules.\n\n") in text
    assert "outside of any module" not in text
    out = json.loads(harness.execute([harness.COMMAND, "diff", "--format", "json", path, path]).ok().stdout)
    assert sum(row["a_bytes"] for row in out["by_category"]) == 108_258_676
    assert out["by_module"] is None and out["unknown"] == {"by_module": "a snapshot has no modules"}
