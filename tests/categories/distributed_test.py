"""Models that are spread over processes keep their names and kinds: arithmetic on their sizes, in each process."""

import json
import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import harness  # noqa: E402

PROGRAM = Path(__file__).resolve().parent / "programs" / "two_ranks.py"
LOWER, UPPER = 4 * (256 * 512 + 512), 4 * (512 * 128 + 128)  # bytes of weight and bias


def processes(how, folder):
    """Of each of the two: the analysis of its host memory, and what is at the end of a backward, by kind."""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this PyTorch has no gloo")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, PROGRAM, how, folder]
    harness.record(folder / "recording", command, env=environment, timeout=300).ok()
    analysis = harness.analysis(folder / "recording")
    found = []
    for device in analysis["devices"]:
        if not device["events"]["alloc"]:
            continue
        at = [i for i, m in enumerate(analysis["moments"])
              if m.get("phase") == "end of backward" and m["kind"] == "phase_begin" and m["process"] == device["process"]]  # fmt: skip
        assert len(at) == 1, analysis["moments"]
        found.append((device, {kind: column[at[0]] for kind, column in device["categories_at_moments"].items()}))
        if how == "ddp":  # the reducer's buckets, which it makes anew after the first step
            ends = [i for i, m in enumerate(analysis["moments"])
                    if m["kind"] == "step_end" and m["process"] == device["process"]]  # fmt: skip
            buckets = device["categories_at_moments"]["framework other"]
            assert [buckets[i] for i in ends] == [LOWER + UPPER] * 4
    assert len(found) == 2, json.dumps(analysis["source"])
    return found


@pytest.mark.parametrize(("how", "share"), [pytest.param("ddp", 1, marks=pytest.mark.slow), ("fsdp", 2)])
def test_each_process_holds_its_share_under_the_modules_names(how, share, tmp_path):
    for device, kinds in processes(how, tmp_path):
        assert kinds["parameter"] == (LOWER + UPPER) // share
        # Where the layers are spread, a thread of gloo may still hold the last whole gradient that it has spread.
        late = (0,) if share == 1 else (0, LOWER)
        assert kinds["gradient"] - (LOWER + UPPER) // share in late
        # Two moments of each parameter, and a step counter of 4 bytes for each of the four.
        assert kinds["optimizer state"] == 2 * (LOWER + UPPER) // share + 4 * 4
        modules = {m["module"]: m["categories"] for m in device["by_module_at_peak"] if m["module"]}
        assert modules["lower"]["parameter"] == LOWER // share
        assert modules["upper"]["parameter"] == UPPER // share


def advised(folder):
    """Of each process: the kinds of advice for it alone, with their bytes, and its peak."""
    found = []
    for path in harness.files(folder / "recording"):
        report = json.loads(harness.execute([harness.COMMAND, "advise", path, "--format", "json"]).ok().stdout)
        peak = max((device["peak"]["requested_bytes"] for device in harness.analysis(path)["devices"]), default=0)
        if peak:
            found.append(({one["kind"]: one["bytes"] for one in report["advice"]}, peak))
    return found


@pytest.mark.parametrize(("how", "share", "model"), [("views", 1, "Net"), ("flat", 2, "FSDPNet")])
def test_a_block_of_all_gradients_is_of_the_whole_model(how, share, model, tmp_path):
    for device, kinds in processes(how, tmp_path):
        assert kinds["gradient"] == (LOWER + UPPER) // share
        modules = {m["module"]: m["categories"] for m in device["by_module_at_peak"] if m["module"]}
        at_peak = device["categories_at_peak"]["gradient"]
        assert modules[model].get("gradient", 0) == at_peak
        # A thread of gloo decides whether the peak is while all gradients are scattered, or after.
        assert at_peak in ((LOWER + UPPER,) if how == "views" else (0, (LOWER + UPPER) // share))
        assert "gradient" not in modules["lower"] and "gradient" not in modules["upper"]
    for kinds, _ in advised(tmp_path):
        assert not {"gradients_kept", "gradients_unused", "gradients_copied"} & kinds.keys()


def test_gradients_beside_buckets_cost_what_views_of_them_save(tmp_path):
    (tmp_path / "ddp").mkdir(), (tmp_path / "views").mkdir()
    processes("ddp", tmp_path / "ddp"), processes("views", tmp_path / "views")
    views = {peak for _, peak in advised(tmp_path / "views")}
    for kinds, peak in advised(tmp_path / "ddp"):
        assert kinds["gradients_copied"] == LOWER + UPPER
        assert views == {peak - (LOWER + UPPER)}
