"""Single blocks, searches, the address space, other settings and two runs, against `analyze`, `whatif` and arithmetic."""

import json
import random

import harness
import pytest
import runs
from commands import snapshots
from page_client import NONE

MIB = 1 << 20


@pytest.fixture
def on_paper(tmp_path, view):
    """A page of a device that was worked out on paper: tests/commands/snapshots.py has its events."""
    path = tmp_path / "paper.pickle"
    snapshots.on_paper(path)
    page = view(path)
    page.run()
    return page, path


def address(columns, i, prefix=""):
    return columns[prefix + "address_hi"][i] << 32 | columns[prefix + "address_lo"][i]


def test_a_block_has_all_its_facts(on_paper):
    page, _ = on_paper
    answer = page.ask("block", id=1)
    block = answer["block"]
    assert (block["size_bytes"], block["start"], block["end"], block["is_freed"]) == (4 * MIB, 3, None, False)
    assert block["address"] == hex(0x7F0000000000 + 4 * MIB)
    assert [(frame["function"], frame["file"], frame["line"], frame["kind"]) for frame in answer["frames"]] == [
        ("kept", "/job/train.py", 2, "user")]
    assert page.ask("stack", id=block["stack"])["frames"] == answer["frames"]
    freed = page.ask("block", id=0)["block"]
    assert (freed["start"], freed["end"], freed["lived_events"]) == (2, 6, 4)
    assert (freed["start_time_ns"], freed["end_time_ns"]) == (1_000_000, 5_000_000)


def test_the_address_space_is_that_of_the_moment(on_paper):
    page, _ = on_paper
    first, second = 0x7F0000000000, 0x7F0010000000
    for event, segments, blocks in (
        (0, [], []),
        (1, [(first, 20)], []),
        (4, [(first, 20)], [(first, 4), (first + 4 * MIB, 4), (first + 8 * MIB, 4)]),
        (8, [(first, 20)], [(first + 4 * MIB, 4)]),
        (10, [(first, 20), (second, 16)], [(first + 4 * MIB, 4), (second, 16)]),
    ):
        header, columns = page.ask("space", event=event)
        assert [(address(columns, i, "segment_"), columns["segment_bytes"][i] / MIB) for i in range(len(columns["segment_bytes"]))] == segments
        assert [(address(columns, i, "block_"), columns["block_bytes"][i] / MIB) for i in range(len(columns["block_id"]))] == blocks


def test_what_is_free_is_fragmented_or_cached_and_rounding_is_neither(on_paper, view):
    page, _ = on_paper
    for event, active, fragmented in ((4, 12, 8), (8, 4, 16), (10, 20, 16)):  # MiB; of 20 reserved, then of 36
        header, _ = page.ask("allocator", event=event)
        assert [header[name] / MIB for name in ("active_bytes", "fragmented_bytes", "cached_bytes")] == [active, fragmented, 0], event
        assert header["reserved_bytes"] == header["active_bytes"] + header["fragmented_bytes"]
    path = snapshots.real("lora_finetune_torch21.pickle")
    told = json.loads(harness.execute([harness.COMMAND, "analyze", "--format", "json", path]).ok().stdout)["devices"][0]["fragmentation_at_peak"]
    page = view(path)
    peak = page.run()["files"][0]["devices"][0]["peak"]["event"]
    header, _ = page.ask("allocator", event=peak)
    assert (header["fragmented_bytes"], header["cached_bytes"]) == (told["pinned_bytes"], told["cached_bytes"])
    _, columns = page.ask("space", event=peak)
    assert sum(columns["segment_bytes"]) == header["reserved_bytes"]
    # What was asked for is less than what the allocator gave.
    assert 0 < header["active_bytes"] - sum(columns["block_bytes"]) < told["pinned_bytes"]


def test_a_refused_request_is_marked(on_paper):
    page, _ = on_paper
    header, columns = page.ask("marks")
    told = [(header["kinds"][kind], event) for kind, event in zip(columns["kind"], columns["event"])]
    assert ("out of memory", 11) in told and ("segment added", 1) in told and ("segment added", 9) in told
    assert header["out_of_memory"][0]["requested_bytes"] == 32 * MIB


def test_what_is_searched_is_found(on_paper):
    page, _ = on_paper
    for q, found in (("early", [0]), ("EARLY", [0]), ("/^.*(kept|big)$/", [1, 3]), ("bytes>4MiB", [3]), ("bytes>=4MiB not late", [0, 1, 3]),
                     ("train.py:3", [2]), ('"train.py:3 late"', [2]), ("lived>4", [1]), ("stream:0", [0, 1, 2, 3]), ("stream:1", []),
                     ("not /./", []), ("/job/train.py", [0, 1, 2, 3])):  # fmt: skip
        header, columns = page.ask("search", q=q, columns=4)
        assert columns["block"] == found, q
        assert header["matches"] == len(found) == sum(columns["hits"])
    big = {"id": 3, "event": 10, "position": 1, "matches": 1, "size_bytes": 16 * MIB, "line": "/job/train.py:4 big"}
    assert page.ask("block_next", q="bytes>4MiB", after=0) == big
    early = {"id": 0, "event": 2, "position": 1, "matches": 1, "size_bytes": 4 * MIB, "line": "/job/train.py:1 early"}
    assert page.ask("block_next", q="early", after=2) == early  # After the last one the first.
    assert page.ask("block_next", q="early", after=10, direction="previous") == early
    found = [page.ask("block_next", q="bytes>=4MiB not late", after=after) for after in (0, 2, 3, 10)]
    assert [(one["id"], one["position"], one["matches"]) for one in found] == [(0, 1, 3), (1, 2, 3), (3, 3, 3), (0, 1, 3)]
    assert page.ask("block_next", q="bytes>=4MiB not late", after=0, direction="previous")["id"] == 3
    assert page.ask("block_next", q="nothing like it") == {"id": None, "event": None}


def test_holders_of_a_range_are_what_it_made_left_and_freed(on_paper):
    page, _ = on_paper
    for what, window, bytes, blocks in (("allocated", (0, 12), 28, 4), ("left", (0, 12), 20, 2), ("freed", (0, 12), 8, 2),
                                        ("allocated", (3, 5), 4, 1), ("left", (0, 5), 12, 3), ("freed", (0, 6), 0, 0)):  # fmt: skip
        header, tree = page.ask("holders", what=what, **{"from": window[0], "to": window[1]})
        assert (header["total_bytes"], header["total_blocks"]) == (bytes * MIB, blocks), (what, window)


def test_what_was_live_before_the_trace_has_no_stack_and_is_of_no_library(view):
    path = snapshots.real("ten_streams_torch21.pickle")
    page = view(path)
    page.run()
    header, tree = page.ask("holders", event=0)
    held = {header["labels"][label]: bytes for label, bytes in zip(tree["label"], tree["bytes"])}
    before = sum(snapshots.live_before(snapshots.load(path), 0).values())
    assert held["(no stack recorded)"] == before
    assert header["kinds"][header["labels"].index("(no stack recorded)")] == "none"


def test_other_settings_reserve_what_whatif_says(on_paper):
    page, path = on_paper
    for settings in ("expandable_segments:True", "expandable_segments:False"):
        told = harness.execute([harness.COMMAND, "whatif", "--format", "json", "--capacity", "none", "--set", settings, path])
        rows = json.loads(told.ok().stdout)["results"]
        wanted = next(row for row in rows if row["settings"] == settings)
        header, columns = page.ask("whatif", settings=settings, capacity="none", columns=100)
        assert header["peak_bytes"] == wanted["peak_reserved_bytes"] == max(columns["reserved"])
        assert header["baseline"]["peak_bytes"] == rows[0]["peak_reserved_bytes"] == max(columns["baseline"])
    header, columns = page.ask("whatif", columns=100)
    # The recorded allocator took a segment right before the allocation that needed it, the simulated one with it.
    assert [columns["reserved"][e] for e in (0, 2, 8, 10, 11)] == [columns["recorded"][e] for e in (0, 2, 8, 10, 11)]
    assert [refused["requested_bytes"] for refused in header["refused"]] == [32 * MIB]
    page.refusal("whatif", settings="no_such_key:1")
    page.refusal("whatif", capacity="much")


def test_settings_are_compared_with_the_replay_that_whatif_compares_them_with(view):
    for name in ("lora_finetune_torch21.pickle", "expandable_oom_4gpu.pickle"):
        path = snapshots.real(name)
        told = json.loads(harness.execute([harness.COMMAND, "whatif", "--format", "json", "--set", "expandable_segments:False", path]).ok().stdout)
        page = view(path)
        device = next(i for i, one in enumerate(page.run()["files"][0]["devices"]) if one["name"] == told["device"])
        header, columns = page.ask("whatif", device=device, settings="expandable_segments:False", columns=8192)
        for row, wanted in zip((header["baseline"], header), told["results"]):
            assert row["peak_bytes"] == wanted["peak_reserved_bytes"], name
            assert row["refused_count"] == wanted["num_ooms"], name
            assert row["retries"] == wanted["num_alloc_retries"], name
        assert header["capacity_bytes"] == told["results"][1]["capacity_bytes"]
        assert header["settings_known"] == told["recorded"]["settings_known"] == (name == "expandable_oom_4gpu.pickle")
        # After events: a retry may have reserved more within one.
        assert 0 < max(columns["baseline"]) <= header["baseline"]["peak_bytes"]


def test_two_runs_stand_side_by_side(view, tmp_path):
    paths = [path for path in runs.SNAPSHOTS if path.name in ("pools_2.15.pickle", "streams_2.13.pickle")]
    page = view(*paths)
    files = page.run()["files"]
    peaks = [file["devices"][0]["peak"]["bytes"] for file in files]
    for by in ("stack", "module", "category"):
        header, tree = page.ask("compare", other=1, by=by)
        assert [header["total_a"], header["total_b"]] == peaks == [tree["bytes_a"][0], tree["bytes_b"][0]]
        assert tree["parent"][0] == NONE
    told = harness.execute([harness.COMMAND, "diff", "--format", "json", *paths]).ok()
    sentences = json.dumps(header["document"])
    assert header["document"]["sections"] and json.loads(told.stdout) and "A" in sentences
    same, tree = page.ask("compare", other=0)
    assert tree["bytes_a"] == tree["bytes_b"] and same["document"] is None


def test_the_document_says_what_analyze_says(view):
    path = runs.SNAPSHOTS[0]
    text = harness.execute([harness.COMMAND, "analyze", path]).ok().stdout.decode()
    document = view(path).run()["files"][0]["document"]
    headline = next(part for part in document["sections"][0]["parts"] if part["kind"] == "sentence" and part["tone"] == "headline")
    assert " ".join(headline["text"].split()) in " ".join(text.split())
