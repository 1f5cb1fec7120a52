"""What a rank held that was killed is nobody's after that: `run` sees when it ended."""

import json
import shutil

import harness
import pytest
import rank_jobs as jobs

MIB = 1 << 20
# Rank 0 holds 100 MiB and is killed; 3 s later rank 1 begins, and holds 150 MiB.
LAUNCHER = """
import os, subprocess, sys, time

def start(rank, code):
    env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    return subprocess.run([sys.executable, "-c", code], env=env).returncode

start(0, "import os, time, torch; kept = torch.ones(25 << 20); time.sleep(2); os.kill(os.getpid(), 9)")
time.sleep(3)
sys.exit(start(1, "import torch; kept = torch.ones(150 << 18)"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    program = tmp_path_factory.mktemp("killed") / "launcher.py"
    program.write_text(LAUNCHER)
    return harness.record(program.parent / "job", [harness.PYTHON, program]).ok().folder


def test_what_a_killed_rank_held_does_not_count_on(folder):
    meta = json.loads((folder / "meta.json").read_text())
    (killed,) = [one for one in meta["exits"] if one["exit"].get("signal_name") == "SIGKILL"]
    assert 3e9 < meta["end_time_ns"] - killed["end_time_ns"] < 30e9
    assert killed["end_time_ns"] == min(one["end_time_ns"] for one in meta["exits"])
    ranks = jobs.ranks_of(folder)
    assert [(one["end"], one["peak_bytes"], one["at_job_peak_bytes"]) for one in ranks["ranks"]] == [
        ("signal", 100 * MIB, 0), ("exited", 150 * MIB, 150 * MIB),
    ]  # fmt: skip
    assert (ranks["job_peak_bytes"], ranks["unknown"].get("job_peak")) == (150 * MIB, None)


def test_a_rank_whose_end_nobody_saw_counts_on_and_is_named(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    meta = json.loads((copy / "meta.json").read_text())
    for one in meta["exits"]:
        del one["end_time_ns"]  # as a version before has it
    (copy / "meta.json").write_text(json.dumps(meta))
    ranks = jobs.ranks_of(copy)
    assert ranks["job_peak_bytes"] == 250 * MIB
    assert ranks["unknown"]["job_peak"] == "nobody saw when rank 0 ended, so what was held then counts on"
