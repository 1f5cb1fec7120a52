"""Real snapshots, event for event, against Python's own unpickler (one that can import nothing)."""
import functools
import io
import json
import pickle
import pickletools
from pathlib import Path

import pytest

import harness

FOLDER = harness.ROOT.parent / "shared" / "snapshots"
FILES = sorted(p for p in FOLDER.glob("*") if p.suffix in (".pickle", ".pkl")) if FOLDER.is_dir() else []
BY_NAME = {p.name: p for p in FILES}

pytestmark = pytest.mark.skipif(not FILES, reason="the real snapshots are not here (../shared/snapshots)")


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} in a snapshot")


def load(path):
    snapshot = PlainUnpickler(io.BytesIO(Path(path).read_bytes())).load()
    return {"segments": snapshot} if isinstance(snapshot, list) else snapshot


def frame_line(frame):
    place = frame["filename"] + (f":{frame['line']}" if frame["line"] else "")
    return f"{place} {frame['name']}".removeprefix(" ")  # some native frames have no file


def with_slashes(frame):
    return frame["filename"].replace("\\", "/")  # of Windows


def runs_backward(frame):
    of_autograd = with_slashes(frame).endswith("/torch/autograd/__init__.py")
    return of_autograd and frame["name"] in ("backward", "grad", "_make_grads")


def runs_step(frames):
    """In an optimizer's step (the wrapper around each), and nobody else's code, a closure say, between."""
    for n, frame in enumerate(frames):
        if with_slashes(frame).endswith("/torch/optim/optimizer.py") and frame["name"] == "wrapper":
            return all("/torch/" in with_slashes(inner) for inner in frames[:n] if inner["filename"].endswith(".py"))
    return False


def expected_event(event):
    """What one line of the export must hold of an event, apart from the device."""
    out = {"action": {"free": "free_completed"}.get(event["action"], event["action"])}
    if "time_us" in event:
        out["time_ns"] = event["time_us"] * 1000
    if event["action"] not in ("oom", "snapshot"):
        out["address"] = event["addr"]
    out["size_bytes"] = out["requested_bytes"] = event["size"]
    out["stream"] = event["stream"]
    if event.get("frames"):
        out["stack"] = [frame_line(frame) for frame in event["frames"]]
    # The phases that frames alone can tell. Of backward it is the first gradient, which is made in Python.
    if event["action"] == "alloc" and any(runs_backward(frame) for frame in event.get("frames", [])):
        out["phase"] = "backward"
    elif runs_step(event.get("frames", [])):
        out["phase"] = "optimizer"
    return out


def export(path):
    return harness.execute([harness.COMMAND, "export", path, "--to", "jsonl"]).ok().stdout


@functools.lru_cache(maxsize=1)
def original(name):
    """The export of a file that several tests write anew."""
    return export(BY_NAME[name])


def exported_by_device(path):
    events = {}
    for line in export(path).splitlines():
        event = json.loads(line)
        assert event.pop("layer") == "framework"
        events.setdefault(event.pop("device"), []).append(event)
    return events


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_event_is_the_one_that_pickle_loads(path):
    exported = exported_by_device(path)
    traces = load(path).get("device_traces", [])
    assert set(exported) == {f"cuda:{device}" for device, trace in enumerate(traces) if trace}
    for device, trace in enumerate(traces):
        assert exported.get(f"cuda:{device}", []) == [expected_event(event) for event in trace]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_analyze_counts_the_events_of_each_kind(path):
    traces = load(path).get("device_traces", [])
    devices = {d["device"]: d["events"] for d in harness.analysis(path)["devices"]}
    for device, trace in enumerate(traces):
        counts = {}
        for event in trace:
            counts[event["action"]] = counts.get(event["action"], 0) + 1
        if counts:
            assert {k: n for k, n in devices[f"cuda:{device}"].items() if n} == counts


def test_devices_are_merged_by_time():
    times = [json.loads(line)["time_ns"] for line in export(BY_NAME["expandable_oom_4gpu.pickle"]).splitlines()]
    assert len(times) == 7923 and times == sorted(times)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["training_ctx512_torch210.pickle", "history_blocks_torch20.pickle"])
def test_every_protocol_reads_the_same(tmp_path, protocol, name):
    again = tmp_path / "again"
    again.write_bytes(pickle.dumps(load(BY_NAME[name]), protocol))
    assert export(again) == original(name)


def with_paths(value, change):
    if isinstance(value, list):
        return [with_paths(one, change) for one in value]
    if isinstance(value, dict):
        return {key: change(one) if key == "filename" else with_paths(one, change) for key, one in value.items()}
    return value


@pytest.mark.parametrize("name", ["lora_finetune_torch21.pickle", "snapshot_events_torch22.pickle", "python_stacks_only.pickle"])
def test_a_program_on_windows_has_the_lines_types_and_phases_that_it_has_on_linux(name, tmp_path):
    def on_linux(path):
        path = path.replace("\\", "/").replace("C:/", "/").replace("-none/lib/", "-none/lib/python3.10/")
        return "/c" + path if path.startswith("/") and path.endswith(".py") else path

    def on_windows(path):
        path = on_linux(path)
        return "C:" + path[2:].replace("/", "\\") if path.startswith("/c/") else path

    answers = []
    for on_system in (on_linux, on_windows):
        folder = tmp_path / on_system.__name__
        folder.mkdir()
        (folder / name).write_bytes(pickle.dumps(with_paths(load(BY_NAME[name]), on_system), 4))
        answer = harness.execute([harness.COMMAND, "analyze", folder / name, "--format", "json"]).ok().stdout.decode()
        answers.append(json.loads(answer.replace(str(folder), "").replace("C:\\\\", "/c/").replace("\\\\", "/")))
    assert answers[0] == answers[1]


def test_a_pickle_without_the_memo_entries_that_nobody_needs(tmp_path):
    path = BY_NAME["python_stacks_only.pickle"]
    again = tmp_path / "optimized"
    again.write_bytes(pickletools.optimize(path.read_bytes()))
    assert export(again) == export(path)


def test_pickles_by_python_written_in_python(tmp_path):
    """The pickler in Python batches and numbers in its own way."""
    again = tmp_path / "again"
    with open(again, "wb") as file:
        pickle._Pickler(file, 4).dump(load(BY_NAME["snapshot_events_torch22.pickle"]))
    assert export(again) == export(BY_NAME["snapshot_events_torch22.pickle"])


@pytest.mark.parametrize("name", ["training_ctx256_torch210.pickle", "ten_streams_torch21.pickle",
                                  "expandable_oom_4gpu.pickle", "inconsistent_synthetic.pickle"])
def test_json_reads_the_same(tmp_path, name):
    again = tmp_path / "snapshot.txt"  # what it is, its content says
    lines = 1 if name == "inconsistent_synthetic.pickle" else None  # Python's own writer is slow
    again.write_text(json.dumps(load(BY_NAME[name]), indent=lines))
    assert export(again) == original(name)


def test_keys_and_values_of_other_tools_are_passed_over(tmp_path):
    path = BY_NAME["snapshot_events_torch22.pickle"]
    snapshot = load(path)
    first = snapshot["device_traces"][0][0]
    snapshot["source_code"] = {f"file{i}.py": "x = 1\n" * 40_000 for i in range(1500)}
    snapshot["shape_data"] = [{"action": 7, "addr": None, "size": b"none"}, first, {1, 2}, frozenset([1.5])]
    snapshot["categories"] = ["parameter", "unknown"]
    for event in snapshot["device_traces"][0]:
        event["category"] = 1
        event["tags"] = ("a", [1, {"b": 2 ** 200}])
    again = tmp_path / "more"
    again.write_bytes(pickle.dumps(snapshot, 4))
    assert export(again) == export(path)
    assert any("'tags'" in reason["reason"] for reason in harness.analysis(again)["lost"]["reasons"])


def test_several_inputs_with_a_snapshot_are_refused():
    done = harness.execute([harness.COMMAND, "export", FILES[0], FILES[1], "--to", "jsonl"])
    assert done.rc == 2 and done.stdout == b""
    assert done.stderr.count(b"\n") == 1 and b"cannot be combined" in done.stderr
