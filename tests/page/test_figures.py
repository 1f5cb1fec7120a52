"""The page's figures are those of `analyze`, to the byte, and none is left out of a column."""

import pickle
import random
import sys

import harness
import pytest
import runs
from commands import snapshots
from page_client import NONE, page_of

DIMENSIONS = ["category", "module", "line", "stack", "stream", "process", "thread", "none"]


@pytest.fixture(scope="module", params=runs.RUNS, ids=lambda path: path.name)
def run(request):
    """The page of a run, its devices by index, and what `analyze` says of each."""
    report = runs.analysis(request.param)
    with page_of([harness.COMMAND], request.param) as page:
        devices = page.run()["files"][0]["devices"]
        yield page, devices, [runs.device_of(report, device["name"]) for device in devices]


def sums_by_column(header, columns):
    width = len(columns["event"])
    return [sum(columns["values"][k * width + i] for k in range(len(header["keys"]))) for i in range(width)]


def test_the_peak_is_that_of_analyze(run):
    page, devices, reports = run
    for device, report in zip(devices, reports):
        if report is None:
            continue
        assert device["peak"]["bytes"] == runs.peak_bytes(report), device["name"]
        assert device["end_bytes"] == report["end"]["requested_bytes" if report["peak"]["basis"] == "requested" else "allocated_bytes"]
        assert device["events"] == sum(report["events"].values())
        if report["peak"]["event_index"] is not None and report["peak"]["basis"] == "requested" and report["process"] is None:
            assert device["peak"]["event"] == report["peak"]["event_index"] + 1


@pytest.mark.parametrize("by", DIMENSIONS)
def test_each_column_adds_up_to_its_total(run, by):
    page, devices, reports = run
    for index, device in enumerate(devices):
        for width in (1, 7, 1000):
            header, columns = page.ask("levels", device=index, by=by, columns=width)
            assert len(header["keys"]) <= 25
            assert sums_by_column(header, columns) == columns["total"], (device["name"], by, width)
            assert max(columns["total"]) == device["peak"]["bytes"]
            assert columns["event"][columns["total"].index(max(columns["total"]))] == device["peak"]["event"]
            assert columns["last"][-1] == device["end_bytes"]
            assert all(low <= last <= high for low, last, high in zip(columns["min"], columns["last"], columns["total"]))


def test_windows_agree_with_each_other(run):
    page, devices, _ = run
    dice = random.Random(7)
    for index, device in enumerate(devices):
        for _ in range(10):
            begin = dice.randrange(0, device["events"] + 1)
            end = dice.randrange(begin + 1, device["events"] + 2)
            header, columns = page.ask("levels", device=index, columns=50, **{"from": begin, "to": end})
            assert columns["begin"][0] == begin and columns["begin"][-1] == header["to"]
            assert sums_by_column(header, columns) == columns["total"]
            for event, total in list(zip(columns["event"], columns["total"]))[:3]:
                held, _ = page.ask("holders", device=index, event=event)
                assert held["total_bytes"] == total


def test_holders_at_the_peak_are_those_of_analyze(run):
    page, devices, reports = run
    for index, (device, report) in enumerate(zip(devices, reports)):
        for by in ("stack", "module", "category"):
            header, tree = page.ask("holders", device=index, event=device["peak"]["event"], by=by)
            assert header["total_bytes"] == device["peak"]["bytes"] == sum(tree["self_bytes"]) == tree["bytes"][0]
            assert tree["parent"][0] == NONE
            assert all(parent < node for node, parent in list(enumerate(tree["parent"]))[1:])
            if report is not None:
                assert header["total_blocks"] == report["peak"]["blocks"]


def test_categories_at_the_peak_are_those_of_analyze(run):
    page, devices, reports = run
    for index, (device, report) in enumerate(zip(devices, reports)):
        if report is None or report["categories_at_peak"] is None:
            continue
        event = device["peak"]["event"]
        header, columns = page.ask("levels", device=index, columns=1, **{"from": event, "to": event + 1})
        told = {key["label"]: bytes for key, bytes in zip(header["keys"], columns["values"]) if bytes}
        assert told == {name: bytes for name, bytes in report["categories_at_peak"].items() if bytes}


def test_the_time_of_the_peak_is_that_of_analyze(run):
    page, devices, reports = run
    for index, (device, report) in enumerate(zip(devices, reports)):
        if report is None or report["peak"]["seconds_after_start"] is None:
            continue
        event = device["peak"]["event"]
        _, columns = page.ask("levels", device=index, columns=1, **{"from": event, "to": event + 1})
        assert columns["time_ns"] == [round(report["peak"]["seconds_after_start"] * 1e9)]


def test_reserved_at_the_peak_is_that_of_analyze(run):
    page, devices, reports = run
    for index, (device, report) in enumerate(zip(devices, reports)):
        # Where what a file lists contradicts its own trace, nobody knows.
        if report is None or report.get("replay") is None or not report["replay"].get("consistent", True):
            continue
        event = device["peak"]["event"]
        _, columns = page.ask("levels", device=index, columns=1, **{"from": event, "to": event + 1})
        if "reserved" in columns and report["peak"]["reserved_bytes"] is not None:
            assert columns["reserved"] == [report["peak"]["reserved_bytes"]]


@pytest.mark.parametrize("limit", [0, 1, 100, 100_000])
def test_no_block_is_forgotten(run, limit):
    page, devices, _ = run
    dice = random.Random(8)
    for index, device in enumerate(devices):
        begin = dice.randrange(0, device["events"] + 1)
        for window in ({}, {"from": begin, "to": min(begin + 50, device["events"] + 1)}):
            header, columns = page.ask("blocks", device=index, limit=limit, columns=100, **window)
            everything, all_columns = page.ask("blocks", device=index, limit=100_000, **window)
            assert len(columns["id"]) + header["left_out"]["blocks"] == header["alive"]["blocks"]
            assert sum(columns["size_bytes"]) + header["left_out"]["bytes"] == header["alive"]["bytes"]
            assert header["alive"] == everything["alive"]
            assert columns["id"] == all_columns["id"][:limit]
            totals = dict(zip(*[page.ask("levels", device=index, by="none", columns=100, **window)[1][n] for n in ("event", "total")]))
            blocks = list(zip(columns["start"], columns["end"], columns["size_bytes"]))
            for event, rest in zip(columns["event"], columns["rest"]):
                assert totals[event] == rest + sum(size for start, end, size in blocks if start <= event < end)


@pytest.mark.parametrize("path", runs.SNAPSHOTS, ids=lambda path: path.name)
def test_every_level_of_a_snapshot_is_that_of_its_trace(path, view):
    data = snapshots.load(path)
    if not isinstance(data, dict) or not any(data.get("device_traces", [])):
        pytest.skip("there is no trace")
    if "inconsistent" in path.name:
        pytest.skip("it contradicts itself")
    page = view(path)
    for index, device in enumerate(page.run()["files"][0]["devices"]):
        trace = data["device_traces"][int(device["name"].split(":")[1])]
        live = snapshots.live_before(data, int(device["name"].split(":")[1]))
        levels = [sum(live.values())]
        end = "free_completed" if any(event["action"] == "free_completed" for event in trace) else "free_requested"
        for event in trace:
            change = 0
            if event["action"] == "alloc":
                change = event["size"]
                live[event["addr"]] = event["size"]
            elif event["action"] == end:
                change = -live.pop(event["addr"], 0)
            levels.append(levels[-1] + change)
        assert device["base_bytes"] == levels[0]
        for begin in range(0, len(levels), 8192):
            window = {"from": begin, "to": min(begin + 8192, len(levels))}
            _, columns = page.ask("levels", device=index, columns=8192, by="none", **window)
            assert columns["event"] == list(range(window["from"], window["to"]))
            assert columns["total"] == levels[window["from"] : window["to"]]


def test_a_line_is_one_band_whoever_calls_it(tmp_path, view):
    forward = {"filename": "model.py", "line": 39, "name": "forward"}
    sizes = (512, 1024, 4096)
    trace = [{"action": "alloc", "addr": 4096 * (1 + i), "size": size, "stream": 0,
              "frames": [forward, {"filename": "train.py", "line": 10 + i, "name": "main"}]} for i, size in enumerate(sizes)]  # fmt: skip
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [trace]}))
    header, columns = view(path).ask("levels", by="line", columns=1)
    of_line = [columns["values"][k] for k, key in enumerate(header["keys"]) if "model.py:39" in key["label"]]
    assert of_line == [sum(sizes)]


def test_fewer_reserved_than_live_is_no_figure_but_a_contradiction(tmp_path, view):
    """10 MiB are live at the peak, the segments at the end have 2 MiB and no event tells of another one."""
    trace = [{"action": "alloc", "addr": 1 << 30, "size": 10 << 20, "stream": 0, "frames": []},
             {"action": "free_completed", "addr": 1 << 30, "size": 10 << 20, "stream": 0, "frames": []}]
    segment = {"address": 1 << 40, "total_size": 2 << 20, "allocated_size": 0, "active_size": 0, "stream": 0, "device": 0,
               "segment_type": "small", "blocks": [{"size": 2 << 20, "requested_size": 0, "state": "inactive"}]}  # fmt: skip
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [trace]}))
    page = view(path)
    (device,) = page.run()["files"][0]["devices"]
    assert {"what": "reserved", "reason": "the events and the segments contradict each other"} in device["unknown"]
    _, columns = page.ask("levels", device=0, columns=4, by="none")
    assert "reserved" not in columns
