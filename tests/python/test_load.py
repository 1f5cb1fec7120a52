"""load(): snapshots against Python's own unpickler, recordings against `export`, answers against the command."""

import gc
import io
import json
import pickle
import subprocess
import sys

import harness
import nested
import numpy as np
import pytest

import gpumemprof

FIXTURES = sorted((harness.ROOT / "tests" / "fixtures" / "allocator").glob("*.pickle"))
REAL = harness.ROOT.parent / "shared" / "snapshots"
SNAPSHOTS = FIXTURES + sorted(p for p in REAL.glob("*") if p.suffix in (".pickle", ".pkl"))
TRAINING = harness.ROOT / "tests" / "fixtures" / "allocator" / "training_2.5.pickle"
FALLING = harness.ROOT / "tests" / "fixtures" / "allocator" / "falling_2.13.pickle"
FOLLOWED = harness.ROOT / "tests" / "fixtures" / "recordings" / "streams_2.13.gmp"  # of a CUDA run
STATES = {"active_allocated": "allocated", "active_pending_free": "pending_free",
          "active_awaiting_free": "pending_free", "inactive": "free"}
UNKNOWN = 2**32 - 1


class DataOnly(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} in a snapshot")


def unpickled(path):
    data = DataOnly(io.BytesIO(path.read_bytes())).load()
    return {"segments": data} if isinstance(data, list) else data


def frame_line(frame):
    place = frame["filename"] + (f":{frame['line']}" if frame["line"] else "")
    return f"{place} {frame['name']}".removeprefix(" ")


def command(*argv):
    return json.loads(harness.execute([harness.COMMAND, *argv, "--format", "json"]).ok().stdout)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("load") / "run"
    nested.record(folder, [sys.executable, harness.PROGRAMS / "known.py"]).ok()
    return folder


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda p: p.name)
def test_every_column_of_a_snapshot_is_what_pickle_loads(path):
    trace = gpumemprof.load(path)
    e = trace.events
    stacks = {int(stack): trace.stack(stack) for stack in np.unique(e.stack)}
    traces = unpickled(path).get("device_traces", [])
    assert len(e) == sum(map(len, traces)) and trace.kind == "pytorch_snapshot"
    assert e.thread is None and trace.threads == []
    for device, expected in enumerate(traces):
        mine = e.device == (trace.devices.index(f"cuda:{device}") if expected else UNKNOWN)
        names = [{"free": "free_completed"}.get(x["action"], x["action"]) for x in expected]
        assert [e.actions[a] for a in e.action[mine]] == names
        assert e.address[mine].tolist() == [0 if x["action"] in ("oom", "snapshot") else x["addr"] for x in expected]
        assert e.size_bytes[mine].tolist() == [x["size"] for x in expected]
        assert [e.streams[s] for s in e.stream[mine]] == [x["stream"] for x in expected]
        frames = [[frame_line(f) for f in x.get("frames", [])] for x in expected]
        assert [stacks[int(s)] for s in e.stack[mine]] == frames
        if e.time_ns is not None:
            assert e.time_ns[mine].tolist() == [x["time_us"] * 1000 for x in expected]
        else:
            assert trace.unknown["time_ns"] and not all("time_us" in x for t in traces for x in t)


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda p: p.name)
def test_segments_and_their_blocks_are_those_of_the_file(path):
    trace = gpumemprof.load(path)
    expected = sorted(unpickled(path)["segments"], key=lambda s: (s["device"], s["address"]))
    named = ("device", "address", "size_bytes", "stream", "allocated_bytes")
    assert [tuple(s[name] for name in named) for s in trace.segments] == [
        (f"cuda:{s['device']}", s["address"], s["total_size"], s["stream"], s["allocated_size"]) for s in expected
    ]
    for mine, theirs in zip(trace.segments, expected, strict=True):
        assert mine["pool"] == tuple(theirs.get("segment_pool_id", (0, 0)))
        address = theirs["address"]
        for block, other in zip(mine["blocks"], theirs["blocks"], strict=True):
            assert (block["address"], block["size_bytes"]) == (address, other["size"])
            assert block["state"] == STATES[other["state"]]
            if "requested_size" in other:
                assert block["requested_bytes"] == other["requested_size"]
            if other.get("frames"):
                assert trace.stack(block["stack"]) == [frame_line(f) for f in other["frames"]]
            address += other["size"]


def test_every_column_of_a_recording_is_what_export_writes(recording):
    trace = gpumemprof.load(recording)
    e = trace.events
    expected = harness.events(recording)
    assert len(e) == len(expected) > 1000 and trace.kind == "recording"
    assert e.time_ns.tolist() == [x["time_ns"] for x in expected]
    assert [e.actions[a] for a in e.action] == [x["action"] for x in expected]
    assert e.address.tolist() == [x["address"] for x in expected]
    assert e.size_bytes.tolist() == [x.get("size_bytes", 0) for x in expected]
    assert [trace.devices[d] for d in e.device] == [x["device"] for x in expected]
    assert [trace.threads[t]["tid"] for t in e.thread] == [x["thread"] for x in expected]
    assert {t["process"] for t in trace.threads} == {x["process"] for x in expected}
    stacks = {int(stack): trace.stack(stack) for stack in np.unique(e.stack)}
    assert [stacks[int(s)] for s in e.stack] == [x.get("stack", []) for x in expected]
    assert trace.lost == harness.analysis(recording)["lost"]


def test_a_file_of_a_recording_opens_too_and_what_it_has_not_is_named(recording):
    (file,) = harness.files(recording)
    trace = gpumemprof.load(str(file))
    assert trace.events.address.tolist() == gpumemprof.load(recording).events.address.tolist()
    assert trace.events.stream is None and trace.segments == []
    assert set(trace.unknown) == {"stream", "segments"} and all(trace.unknown.values())
    with pytest.raises(ValueError, match="no CUDA memory was recorded"):
        trace.whatif("expandable_segments:True")


def test_processes_that_share_a_devices_name_are_told_apart(tmp_path):
    child = "import torch; kept = torch.ones(3000)"
    start = f"subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    parent = f"import subprocess, sys, torch; torch.ones(5000); {start}"
    harness.record(tmp_path / "run", [sys.executable, "-c", parent]).ok()
    trace = gpumemprof.load(tmp_path / "run")
    expected = {f"{d['process']}/{d['device']}": d["peak"] for d in harness.analysis(tmp_path / "run")["devices"]}
    assert len(expected) == 2 and {p["allocated_bytes"] for p in expected.values()} == {12_000, 20_000}
    assert trace.peak == expected
    for device, thread in zip(trace.events.device, trace.events.thread, strict=True):
        assert trace.devices[device] == f"{trace.threads[thread]['process']}/cpu"


def test_sums_of_processes_that_share_their_name_are_told_apart(monkeypatch):
    trace = gpumemprof.load(TRAINING)
    names = ["tensorflow:cpu", "tensorflow:mklcpu"]

    class Native:
        def devices(self):
            return [(f"{pid}/{name}", name, index) for index, pid in enumerate((71, 72)) for name in names]

    monkeypatch.setattr(trace, "_native", Native())
    both = "tensorflow:cpu + mklcpu"
    devices = [{"device": n, "process_index": i, "peak": {"at": 10 * i}} for i in (0, 1) for n in names]
    sums = [{"device": both, "process_index": i, "parts": names, "peak": {"at": i + 1}} for i in (0, 1)]
    monkeypatch.setattr(trace, "analysis", lambda: {"devices": devices, "sums": sums})
    assert {name: peak["at"] for name, peak in trace.peak.items()} == {
        "71/tensorflow:cpu": 0, "71/tensorflow:mklcpu": 0, f"71/{both}": 1,
        "72/tensorflow:cpu": 10, "72/tensorflow:mklcpu": 10, f"72/{both}": 2,
    }  # fmt: skip


def test_columns_are_views_that_outlive_the_trace():
    events = gpumemprof.load(TRAINING).events
    address, size = events.address, events.size_bytes
    kept, summed = address.tolist(), int(size.sum())
    dtypes = {"time_ns": "int64", "action": "uint8", "address": "uint64", "size_bytes": "uint64",
              "stack": "uint32", "device": "uint16", "stream": "uint16"}  # fmt: skip
    assert {name: getattr(events, name).dtype.name for name in dtypes} == dtypes
    assert not address.flags.owndata and not address.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        address[0] = 1
    del events
    gc.collect()
    noise = [np.full(len(kept), 7, np.uint64) for _ in range(100)]  # would land where the columns were
    assert address.tolist() == kept and int(size.sum()) == summed and len(noise) == 100


@pytest.mark.parametrize("path", [TRAINING, FALLING, FOLLOWED], ids=lambda p: p.name)
def test_answers_are_those_of_the_command(path):
    trace = gpumemprof.load(path)
    analysis = command("analyze", path)
    assert trace.analysis() == analysis
    assert trace.peak == {d["device"]: d["peak"] for d in analysis["devices"]}
    settings = ["expandable_segments:True", "max_split_size_mb:128"]
    assert trace.whatif(settings, capacity="1GiB", torch="2.13") == command(
        "whatif", path, "--set", settings[0], "--set", settings[1], "--capacity", "1GiB", "--torch", "2.13")
    assert trace.whatif(settings[0], capacity=2**30) == command(
        "whatif", path, "--set", settings[0], "--capacity", str(2**30))


def test_a_snapshot_and_a_recording_can_be_compared(recording):
    diff = gpumemprof.load(recording).diff(gpumemprof.load(TRAINING))
    assert gpumemprof.load(recording).diff(TRAINING) == diff
    assert diff == command("diff", recording, TRAINING) and diff["schema"] == "gpumemprof.diff/1"
    assert gpumemprof.load(recording).analysis() == command("analyze", recording)
    with pytest.raises(ValueError, match="no device 'cuda:7'"):
        gpumemprof.load(TRAINING).diff(gpumemprof.load(FALLING), device="cuda:7")


def test_wrong_files_and_questions_are_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing here"):
        gpumemprof.load(tmp_path / "nothing here")
    cut = tmp_path / "cut.pickle"
    cut.write_bytes(TRAINING.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"^[^\n]*cut\.pickle: [^\n]*\(at byte \d+\)$"):
        gpumemprof.load(cut)
    (tmp_path / "text").write_text("not a trace")
    with pytest.raises(ValueError, match="not a gpumemprof recording"):
        gpumemprof.load(tmp_path / "text")
    code = tmp_path / "code.pickle"
    code.write_bytes(pickle.dumps({"device_traces": [], "segments": [subprocess.run]}))
    with pytest.raises(ValueError, match="at byte"):
        gpumemprof.load(code)
    trace = gpumemprof.load(TRAINING)
    refused = ({"settings": "bogus:1"}, {"capacity": "much"}, {"capacity": 0}, {"torch": "9.9"}, {"device": "cuda:3"})
    for wrong in refused:
        with pytest.raises(ValueError, match="training_2.5.pickle: "):
            trace.whatif(**wrong)
    for number in (-1, 10**6, 2**40):
        with pytest.raises(IndexError):
            trace.stack(number)
    with pytest.raises(TypeError):
        trace.stack("1")


def test_numpy_is_imported_for_columns_only_and_named_where_it_is_missing():
    code = """
import sys, gpumemprof
trace = gpumemprof.load(sys.argv[1])
assert len(trace.events) == 521 and trace.peak and trace.stack(1) and trace.segments
assert trace.events.__arrow_c_stream__() is not None  # dropped unread
assert "numpy" not in sys.modules
sys.modules["numpy"] = None
try:
    trace.events.address
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, TRAINING], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"NumPy, for columns of events, is required: install it for {sys.executable} with `pip install numpy`\n"
    )


def test_a_folder_without_a_recording_is_told_as_the_command_tells_it(tmp_path):
    said = (f"{tmp_path}: holds no recording (.gmp file) and no snapshot: give the folder of a recording, "
            "or a snapshot")  # fmt: skip
    with pytest.raises(FileNotFoundError) as error:
        gpumemprof.load(tmp_path)
    assert str(error.value) == said
    done = harness.execute([harness.COMMAND, "analyze", tmp_path])
    assert (done.rc, done.stderr.decode()) == (2, f"gpumemprof: {said}\n")


def test_arrow_shares_the_columns_memory_and_says_what_is_unknown():
    pa = pytest.importorskip("pyarrow")
    trace = gpumemprof.load(TRAINING)
    e = trace.events
    reader = pa.RecordBatchReader.from_stream(e)
    assert len(reader.schema) == 8
    (batch,) = list(reader)
    batch.validate(full=True)
    for name in ("time_ns", "address", "size_bytes", "stack"):
        assert batch[name].buffers()[1].address == getattr(e, name).ctypes.data
    assert batch["action"].indices.buffers()[1].address == e.action.ctypes.data
    assert batch["action"].to_pylist() == [e.actions[a] for a in e.action]
    assert batch["device"].to_pylist() == ["cuda:0"] * 521 and batch["stream"].to_pylist() == [0] * 521
    has_no_address = [e.actions[a] == "snapshot" for a in e.action]
    assert [value is None for value in batch["address"].to_pylist()] == has_no_address and sum(has_no_address) == 1
    assert batch["thread"].null_count == 521 and batch["size_bytes"].null_count == 0
    assert pa.table(e).equals(pa.table(e))  # each call is a stream of its own
    sizes, expected = batch["size_bytes"], e.size_bytes.tolist()
    del trace, e, reader, batch
    gc.collect()
    assert sizes.to_pylist() == expected


def test_arrow_of_a_recording_has_its_threads_and_no_streams(recording):
    pa = pytest.importorskip("pyarrow")
    trace = gpumemprof.load(recording)
    table = pa.table(trace.events)
    table.validate(full=True)
    expected = harness.events(recording)
    assert table["stream"].null_count == len(expected)
    assert table["size_bytes"].to_pylist() == [x.get("size_bytes") for x in expected]
    assert table["device"].to_pylist() == [x["device"] for x in expected]
    assert [trace.threads[t]["tid"] for t in table["thread"].to_pylist()] == [x["thread"] for x in expected]


def test_duckdb_queries_the_columns_where_they_are():
    duckdb = pytest.importorskip("duckdb")
    e = gpumemprof.load(TRAINING).events
    counted = duckdb.sql("select action, count(*), sum(size_bytes) from e group by action").fetchall()
    expected = {}
    for action, size in zip(e.action, e.size_bytes.tolist(), strict=True):
        count, total = expected.get(e.actions[action], (0, 0))
        expected[e.actions[action]] = (count + 1, total + size)
    assert {action: (count, int(total)) for action, count, total in counted} == expected
    assert duckdb.sql("select count(*) from e where thread is null").fetchall() == [(521,)]


@pytest.mark.parametrize("library, frame", [("pandas", "DataFrame.from_arrow"), ("polars", "DataFrame")])
def test_data_frames_read_the_events(library, frame):
    make = pytest.importorskip(library)
    for part in frame.split("."):
        make = getattr(make, part)
    e = gpumemprof.load(TRAINING).events
    shown = make(e)
    assert list(shown.columns) == ["time_ns", "action", "address", "size_bytes", "stack", "device", "thread", "stream"]
    assert shown["size_bytes"].to_numpy().tolist() == e.size_bytes.tolist()
    assert list(shown["action"]) == [e.actions[a] for a in e.action]


def test_a_snapshot_without_events_is_empty_columns(tmp_path):
    path = tmp_path / "empty.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": []}, 4))
    trace = gpumemprof.load(path)
    assert len(trace.events) == 0 and trace.events.address.tolist() == [] and trace.peak == {} and trace.segments == []
    with pytest.raises(ValueError, match="empty"):
        trace.whatif()
    pa = pytest.importorskip("pyarrow")
    assert pa.table(trace.events).num_rows == 0
