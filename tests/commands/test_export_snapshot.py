"""`export --to snapshot` writes what PyTorch's own tools read, and loses nothing that the model knows."""

import importlib.util
import subprocess
import sys

import harness
import pytest
import snapshots

LEFT_OUT = {"compile_context", "user_metadata", "forward_frames"}


def exported(path, folder):
    out = folder / "again.pickle"
    harness.execute([harness.COMMAND, "export", path, "--to", "snapshot", "-o", out]).ok()
    return out


def without_what_is_left_out(trace):
    return [{key: value for key, value in event.items() if key not in LEFT_OUT} for event in trace]


@pytest.mark.parametrize("name", ["training_ctx512_torch210.pickle", "expandable_oom_4gpu.pickle", "ten_streams_torch21.pickle"])
def test_a_real_snapshot_survives_the_way_there_and_back(name, tmp_path):
    path = snapshots.real(name)
    before, after = snapshots.load(path), snapshots.load(exported(path, tmp_path))
    assert len(after["device_traces"]) <= len(before["device_traces"])
    for was, now in zip(before["device_traces"], after["device_traces"], strict=False):
        assert without_what_is_left_out(was) == now
    order = lambda s: (s["device"], s["address"])  # noqa: E731
    assert sorted(after["segments"], key=order) == sorted(before["segments"], key=order)


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
    assert done.rc == 2 and b"holds no segments" in done.stderr and done.stdout == b""
