"""`export --to snapshot` writes what PyTorch's own tools read, and loses nothing that the model knows."""

import importlib.util
import subprocess
import sys

import harness
import pytest
import snapshots

def exported(path, folder):
    out = folder / "again.pickle"
    harness.execute([harness.COMMAND, "export", path, "--to", "snapshot", "-o", out]).ok()
    return out


def without(key, trace):
    return [{name: value for name, value in event.items() if name != key} for event in trace]


@pytest.mark.parametrize("name", ["training_ctx512_torch210.pickle", "expandable_oom_4gpu.pickle", "ten_streams_torch21.pickle"])
def test_a_real_snapshot_survives_the_way_there_and_back(name, tmp_path):
    path = snapshots.real(name)
    before, after = snapshots.load(path), snapshots.load(exported(path, tmp_path))
    assert len(after["device_traces"]) <= len(before["device_traces"])
    for was, now in zip(before["device_traces"], after["device_traces"], strict=False):
        assert was == now
    order = lambda s: (s["device"], s["address"])  # noqa: E731
    assert sorted(after["segments"], key=order) == sorted(before["segments"], key=order)


def test_pinned_memory_pools_and_the_programs_own_words_survive_and_the_rest_is_counted(tmp_path):
    path = harness.ROOT / "fuzz" / "corpus" / "fuzz_torch_snapshot" / "torch_2_14.pickle"
    out = tmp_path / "again.pickle"
    done = harness.execute([harness.COMMAND, "export", path, "--to", "snapshot", "-o", out]).ok()
    before, after = snapshots.load(path), snapshots.load(out)
    for was, now in zip(before["device_traces"], after["device_traces"], strict=False):
        assert [e for e in without("forward_frames", was) if e["action"] != "annotate"] == now
    assert {event["user_metadata"] for event in after["device_traces"][0]} >= {"step 1"}
    assert {event["pool_id"] for event in after["device_traces"][0]} >= {(0, 0)}
    assert after["host_traces"] == before["host_traces"]
    keys = before["host_segments"][0].keys()
    assert [{key: segment[key] for key in keys} for segment in after["host_segments"]] == before["host_segments"]
    left_out = sum(bool(event.get("forward_frames")) for trace in before["device_traces"] for event in trace)
    assert left_out > 0
    line = done.stderr.decode()
    assert line.count("\n") == 1 and f"not written: {left_out} events' forward_frames" in line
    marks = sum(event["action"] == "annotate" for trace in before["device_traces"] for event in trace)
    assert marks > 0 and f"{marks} marks 'annotate' in the trace are ignored" in line


def test_the_export_reads_as_its_original(tmp_path):
    snapshots.on_paper(tmp_path / "a.pickle")
    first = harness.analysis(tmp_path / "a.pickle")
    second = harness.analysis(exported(tmp_path / "a.pickle", tmp_path))
    # What tells the writer's release is not kept, and one of several with the same rules is found.
    for device in first["devices"] + second["devices"]:
        del device["allocator"]["torch"], device["allocator"]["torch_was_searched"]
    assert second["devices"] == first["devices"]


def test_pytorchs_own_viewer_reads_it(tmp_path):
    found = importlib.util.find_spec("torch")
    if found is None:
        pytest.skip("needs torch")
    tool = next(iter(found.submodule_search_locations)) + "/cuda/_memory_viz.py"
    snapshots.on_paper(tmp_path / "a.pickle")
    out = exported(tmp_path / "a.pickle", tmp_path)
    shown = subprocess.run([sys.executable, tool, "stats", out], capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    assert "20.0MiB" in shown.stdout
    page = tmp_path / "page.html"
    drawn = subprocess.run([sys.executable, tool, "trace_plot", out, "-o", page], capture_output=True, text=True, timeout=120)
    assert drawn.returncode == 0, drawn.stderr
    assert page.stat().st_size > 0


def test_a_recording_is_refused_with_the_reason():
    done = harness.execute(
        [harness.COMMAND, "export", harness.ROOT / "tests" / "compat" / "1.0-small.gmp", "--to", "snapshot"])
    assert done.rc == 2 and b": no CUDA memory was recorded" in done.stderr and done.stdout == b""
