"""The tables have the figures of `analyze`, to the byte: recomputed in plain Python from what pyarrow reads."""

import collections
import csv
import io
import json
import pickle
import re
import sqlite3

import harness
import lakes
import pyarrow.parquet as pq
import pytest
from commands import snapshots
from gpumemprof._children.lake import schema

RUNS = lakes.RECORDINGS + lakes.SNAPSHOTS


@pytest.fixture(scope="module", params=RUNS + lakes.REAL_SNAPSHOTS, ids=lambda path: path.name)
def exported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    return lakes.export(request.param, folder / "lake"), lakes.analysis(request.param)


def by_memory(folder, name):
    rows = collections.defaultdict(list)
    for row in lakes.table(folder, name):
        rows[row["memory"]].append(row)
    return rows


def test_the_most_that_was_live_is_the_peak_of_analyze(exported):
    folder, report = exported
    intervals = by_memory(folder, "intervals")
    for rank in lakes.table(folder, "ranks"):
        own = intervals[rank["memory"]]
        levels = lakes.level_after_each(own)
        assert len(own) == rank["intervals"]
        assert max(levels.values(), default=0) == rank["peak_bytes"]
        if levels:
            assert min(event for event, live in levels.items() if live == rank["peak_bytes"]) <= rank["peak_event"]
            assert levels[max(levels)] == rank["end_bytes"]
        assert levels.get(0, 0) == rank["before_bytes"]
        device = lakes.reported(report, rank)
        if device is not None:
            assert rank["peak_bytes"] == lakes.peak_of(device)
            assert rank["events"] == sum(device["events"].values())
            assert rank["size_basis"] == device["peak"]["basis"]
            assert len(lakes.live_at(own, rank["peak_event"])) == device["peak"]["blocks"]
            if device["peak_reserved"]["reserved_bytes"] is not None:
                assert rank["peak_reserved_bytes"] == device["peak_reserved"]["reserved_bytes"]


def test_categories_at_the_peak_are_those_of_analyze(exported):
    folder, report = exported
    intervals, changes = by_memory(folder, "intervals"), by_memory(folder, "categories")
    for rank in lakes.table(folder, "ranks"):
        device = lakes.reported(report, rank)
        if device is None or not device["categories_at_peak"]:
            continue
        earlier = collections.defaultdict(list)
        for row in changes[rank["memory"]]:
            earlier[row["interval"]].append(row)
        sums = collections.Counter()
        for row in lakes.live_at(intervals[rank["memory"]], rank["peak_event"]):
            sums[lakes.category_at(row, earlier, rank["peak_event"])] += row["size_bytes"]
        assert {name: size for name, size in sums.items() if size} == {
            name: size for name, size in device["categories_at_peak"].items() if size}


def test_lines_at_the_peak_are_the_holders_of_analyze(exported):
    folder, report = exported
    intervals = by_memory(folder, "intervals")
    stacks = {row["stack"]: row for row in lakes.table(folder, "stacks")}
    for rank in lakes.table(folder, "ranks"):
        device = lakes.reported(report, rank)
        if device is None:
            continue
        own, theirs = collections.Counter(), collections.Counter()
        for row in lakes.live_at(intervals[rank["memory"]], rank["peak_event"]):
            stack = stacks[row["stack"]]
            own[stack["line"], len(stack["frames"] or [])] += row["size_bytes"]
        for holder in device["holders_at_peak"]:
            theirs[holder["line"], len(holder["stack"])] += holder["bytes"]
        assert {key: size for key, size in own.items() if size} == {key: size for key, size in theirs.items() if size}


def test_intervals_are_the_allocations_of_the_exported_events(training, lake):
    text = lakes.run(["export", training, "--to", "csv"]).ok().stdout.decode()
    events = list(csv.DictReader(io.StringIO(text)))
    live, expected = {}, []
    for number, event in enumerate(events, 1):
        address = int(event["address"])
        if event["action"] == "alloc":
            live[address] = [int(event["size_bytes"]), number, None, int(event["time_ns"]), int(event["thread"]), event["step"]]
            expected.append(live[address])
        else:
            live.pop(address)[2] = number
    run = lake / training.name
    (rank,) = lakes.table(run, "ranks")
    assert rank["events"] == len(events)
    rows = [[r["size_bytes"], r["birth_event"], r["death_event"], r["birth_time_ns"], r["thread"],
             "" if r["step"] is None else str(r["step"])] for r in lakes.table(run, "intervals")]
    assert rows == expected
    naive = harness.NaivePeak([{**event, "size_bytes": int(event["size_bytes"] or 0)} for event in events])
    assert (naive.peak_bytes, naive.peak_index + 1) == (rank["peak_bytes"], rank["peak_event"])
    assert naive.peak_bytes > 3_000_001


def test_steps_are_the_moments_of_analyze(training, lake):
    steps = [row for row in lakes.table(lake / training.name, "steps") if row["kind"] == "step"]
    told = [moment for moment in lakes.analysis(training)["moments"] if moment["kind"] == "step_end"]
    assert [(row["step"], row["end_event"], row["end_time_ns"]) for row in steps] == [
        (moment["step"], moment["event_index"], moment["time_ns"]) for moment in told]
    assert len(steps) >= 3 and all(a["end_event"] == b["begin_event"] for a, b in zip(steps, steps[1:]))


def test_annotations_and_reserved_bytes_of_a_snapshot_are_those_on_paper(tmp_path):
    data = snapshots.on_paper(tmp_path / "paper.pickle")
    begin_us = data["device_traces"][0][0]["time_us"]
    data["external_annotations"] = [{"device": 0, "time_us": begin_us + after_us, "name": name, "stage": stage} for after_us, name, stage in (
        (500, "ProfilerStep#1", "START"), (3500, "inner", "START"), (4500, "inner", "END"), (6500, "ProfilerStep#1", "END"))]
    (tmp_path / "paper.pickle").write_bytes(pickle.dumps(data))
    run = lakes.export(tmp_path / "paper.pickle", tmp_path / "lake")
    assert [(r["kind"], r["name"], r["begin_event"], r["end_event"], r["end_time_ns"]) for r in lakes.table(run, "steps")] == [
        ("annotation", "ProfilerStep#1", 1, 7, (begin_us + 6500) * 1000), ("annotation", "inner", 4, 5, (begin_us + 4500) * 1000)]
    assert [(r["event"], r["name"], r["value_bytes"]) for r in lakes.table(run, "samples")] == [
        (0, "reserved", 0), (1, "reserved", 20 * snapshots.MIB), (9, "reserved", 36 * snapshots.MIB)]
    (rank,) = lakes.table(run, "ranks")
    assert (rank["peak_bytes"], rank["peak_event"], rank["peak_reserved_bytes"]) == (20 * snapshots.MIB, 10, 36 * snapshots.MIB)


def test_folded_stacks_are_those_of_the_export(training, lake):
    run = lake / training.name
    (rank,) = lakes.table(run, "ranks")
    folded = {row["stack"]: row["folded"] for row in lakes.table(run, "stacks")}
    sums = collections.Counter()
    for row in lakes.live_at(lakes.table(run, "intervals"), rank["peak_event"]):
        sums[folded[row["stack"]]] += row["size_bytes"]
    theirs = collections.Counter()
    for line in lakes.run(["export", training, "--to", "folded"]).ok().stdout.decode().splitlines():
        stack, _, size = line.rpartition(" ")
        theirs[stack] += int(size)
    assert {k: v for k, v in sums.items() if v} == {k: v for k, v in theirs.items() if v}


def test_findings_are_those_of_analyze(lake):
    report = lakes.analysis(lakes.SNAPSHOTS[0])
    rows = lakes.table(lake / lakes.SNAPSHOTS[0].name, "findings")
    assert [(r["kind"], r["title"], r["size_bytes"], json.loads(r["evidence"])) for r in rows] == [
        (f["kind"], f["title"], f["bytes"], f["evidence"]) for f in report["findings"]]


def test_sqlite_has_the_rows_of_parquet(training, lake, tmp_path):
    lakes.run(["export", training, "--to", "sqlite", "-o", tmp_path / "run.db"]).ok()
    with sqlite3.connect(tmp_path / "run.db") as connection:
        connection.row_factory = sqlite3.Row
        for name in schema.TABLES:
            rows = [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
            for row in rows:
                if "frames" in row:
                    row["frames"] = row["frames"] and json.loads(row["frames"])
            expected = lakes.table(lake / training.name, name)
            assert rows == [{k: int(v) if isinstance(v, bool) else v for k, v in row.items()} for row in expected], name


def test_every_file_names_its_schema_and_has_its_columns(lake):
    files = sorted(lake.glob("*/*.parquet"))
    assert len(files) >= 2 * len(schema.TABLES)
    for path in files:
        file = pq.ParquetFile(path)
        said = file.schema_arrow.metadata or file.metadata.metadata
        assert said[b"gpumemprof_schema"] == b"gpumemprof.lake" and said[b"gpumemprof_schema_version"] == b"1"
        assert said[b"gpumemprof_run"].decode() == path.parent.name
        assert [column.name for column in schema.TABLES[path.name.split(".")[0]]] == file.schema_arrow.names


def test_the_page_of_the_lake_has_every_column():
    page = (harness.ROOT / "docs" / "lake.md").read_text()
    documented = {}
    for part in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        name = part.split("\n", 1)[0].strip("` ")
        documented[name] = re.findall(r"^\| `(\w+)` \| (\S+) \| (.*) \|$", part, re.MULTILINE)
    assert documented == {
        name: [(column.name, column.type, column.meaning) for column in columns] for name, columns in schema.TABLES.items()}


def test_two_events_of_a_real_program_take_at_most_twelve_bytes(tmp_path):
    """6 bytes an event: the budget of the format, of a run long enough for it."""
    if not lakes.REAL_SNAPSHOTS:
        pytest.skip("needs ../shared/snapshots")
    largest = max(lakes.REAL_SNAPSHOTS, key=lambda path: path.stat().st_size)
    run = lakes.export(largest, tmp_path / "lake")
    events = sum(rank["events"] for rank in lakes.table(run, "ranks"))
    assert sum(file.stat().st_size for file in run.glob("intervals.*")) <= 6 * events
