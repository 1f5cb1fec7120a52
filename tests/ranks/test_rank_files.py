"""Files of a job that are missing, torn, of another job or hostile: they are named, and everything else is answered."""
import random
import shutil
import struct

import pytest

import harness
import rank_jobs as jobs


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed") / "job"
    done = jobs.record(folder, "plain", steps=20, quiet=False, DIES="2")
    assert done.rc != 0
    (folder.parent / "summary").write_bytes(done.stderr)
    return folder


def file_of(folder, rank):
    pid = next(one["pid"] for one in jobs.ranks_of(folder)["ranks"] if one["rank"] == rank)
    return next(folder.glob(f"*.{pid}.*.gmp"))


def test_the_rank_that_died_says_how(job):
    ranks = jobs.ranks_of(job)
    assert (ranks["ranks"][2]["end"], ranks["ranks"][2]["signal"]) == ("signal", "SIGKILL")
    assert all(one["signal"] in ("SIGTERM", "SIGABRT", None) for one in ranks["ranks"] if one["rank"] != 2)
    summary = (job.parent / "summary").read_text().partition("gpumemprof: ")[2]
    assert "Score: none, because SIGKILL ended rank 2." in jobs.analyze(job, output="text")
    for text in (jobs.analyze(job, output="text"), summary):
        assert "SIGKILL ended rank 2." in text
        # torchrun raises an error of its own then, whose text begins with a ruler.
        assert "ChildFailedError" not in text and "=====" not in text


def copied(job, tmp_path):
    return shutil.copytree(job, tmp_path / "copy")


def test_a_missing_rank_is_named(job, tmp_path):
    folder = copied(job, tmp_path)
    file_of(job, 1).name and (folder / file_of(job, 1).name).unlink()
    ranks = jobs.ranks_of(folder)
    assert (ranks["missing"], ranks["world_size"], [one["rank"] for one in ranks["ranks"]]) == ([1], 4, [0, 2, 3])
    text = jobs.analyze(folder, output="text")
    assert "Rank 1 has no recording; the job has 4 ranks." in text
    assert "Nothing was lost of the ranks that were recorded." in text


@pytest.mark.parametrize("damage", ["torn", "noise", "newer", "empty"])
def test_a_file_that_is_no_recording_is_named_and_left_out(job, tmp_path, damage):
    folder = copied(job, tmp_path)
    path = folder / file_of(job, 1).name
    content = bytearray(path.read_bytes())
    if damage == "newer":
        content[8:10] = struct.pack("<H", 9)  # the major version
    path.write_bytes({"torn": content[:700], "noise": random.Random(1).randbytes(len(content)), "newer": content, "empty": b""}[damage])
    report = jobs.analyze(folder)
    assert report["ranks"]["missing"] == [1]
    assert any(path.name in reason["reason"] for reason in report["lost"]["reasons"])
    assert [one["end"] for one in report["ranks"]["ranks"] if one["rank"] == 2] == ["signal"]


def test_ranks_of_another_job_are_named_and_left_out(job, tmp_path):
    other = tmp_path / "other"
    jobs.record(other, "plain", steps=2, ranks=2).ok()
    for path in other.glob("*.gmp"):
        shutil.copy(path, copied(job, tmp_path) if not (tmp_path / "copy").exists() else tmp_path / "copy")
    report = jobs.analyze(tmp_path / "copy")
    assert [one["rank"] for one in report["ranks"]["ranks"]] == [0, 1, 2, 3]
    left_out = [reason["reason"] for reason in report["lost"]["reasons"] if "of another job (torchrun" in reason["reason"]]
    assert len(left_out) == 2 and all(any(path.name in text for text in left_out) for path in other.glob("*.gmp"))


def test_how_another_job_ended_is_not_told_of_this_one(tmp_path):
    whole, dead = tmp_path / "whole", tmp_path / "dead"
    jobs.record(whole, "plain", steps=2, ranks=3).ok()
    jobs.record(dead, "plain", steps=2, ranks=2, DIES="1")
    assert jobs.analyze(dead)["end"]["failure"] is not None
    for folders in ([whole, dead], [tmp_path]):
        report = jobs.analyze(*folders)
        assert [one["rank"] for one in report["ranks"]["ranks"]] == [0, 1, 2]
        assert report["end"]["failure"] is None and len(report["end"]["runs"]) == 1


def test_a_rank_whose_events_are_torn_is_not_counted_among_the_peaks(job, tmp_path):
    folder = copied(job, tmp_path)
    path = folder / file_of(job, 1).name
    cut = 2 * 4096 + 40  # within the header of a chunk
    path.write_bytes(path.read_bytes()[:cut])
    report = jobs.analyze(folder)
    assert [one["peak_bytes"] is None for one in report["ranks"]["ranks"]] == [False, True, False, False]
    assert report["lost"]["bytes"] == 40
    text = jobs.analyze(folder, output="text")
    assert "No allocation of rank 1 was recorded." in text
    assert "3 ranks with allocations" in text or "of 3 ranks" in text, text[:600]


def test_a_hostile_place_in_the_job_is_no_place(job, tmp_path):
    """A rank and a size of four billion, and no checksum that fits."""
    folder = copied(job, tmp_path)
    path = folder / file_of(job, 1).name
    content = bytearray(path.read_bytes())
    content[1196:1200] = b"\xff" * 4  # rank + 1
    content[1240:1360] = b"\xff" * 120
    path.write_bytes(content)
    ranks = jobs.ranks_of(folder)
    assert ranks["world_size"] == 4 and 1 in ranks["missing"]


def test_two_recordings_below_a_folder_that_are_no_job(tmp_path):
    for name in ("a", "b"):
        harness.execute([harness.COMMAND, "run", "-q", "-o", str(tmp_path / "above" / name), "--", harness.PYTHON, "-c",
                         "import torch; torch.zeros(100000)"]).ok()
    done = harness.execute([harness.COMMAND, "analyze", str(tmp_path / "above")])
    assert done.rc == 2 and b"2 recordings that are not ranks of a job; give one" in done.stderr


LAUNCHERS = {
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
    "PMI": {"PMI_RANK": "1", "PMI_SIZE": "3", "MPI_LOCALRANKID": "1"},
    "Slurm": {"SLURM_PROCID": "1", "SLURM_NTASKS": "3", "SLURM_LOCALID": "1", "SLURM_NODEID": "0", "SLURM_JOB_ID": "7"},
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_of_other_launchers(tmp_path, launcher):
    harness.execute([harness.COMMAND, "run", "-q", "-o", str(tmp_path / "job"), "--", harness.PYTHON, "-c", "import torch; torch.zeros(100000)"],
                    env={**jobs.ENVIRONMENT, **LAUNCHERS[launcher]}).ok()
    ranks = jobs.ranks_of(tmp_path / "job")
    assert (ranks["launcher"], ranks["world_size"], ranks["missing"], ranks["missing_count"]) == (launcher, 3, [0, 2], 2)
    assert [(one["rank"], one["local_rank"], one["peak_bytes"]) for one in ranks["ranks"]] == [(1, 1, 400_000)]
    assert (ranks["job_peak_bytes"], ranks["unknown"]["job_peak"]) == (None, "one rank alone was recorded")
    text = jobs.analyze(tmp_path / "job", output="text")
    assert f"1 of 3 ranks was recorded ({launcher}), on 1 host." in text
    assert "unknown, because one rank alone was recorded." in text


def test_a_task_alone_is_no_job(tmp_path):
    harness.execute([harness.COMMAND, "run", "-q", "-o", str(tmp_path / "job"), "--", harness.PYTHON, "-c", "import torch; torch.zeros(100000)"],
                    env={**jobs.ENVIRONMENT, "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}).ok()
    report = jobs.analyze(tmp_path / "job")
    assert report["ranks"] is None and report["processes"][0]["rank"] is None


SPAWNED = """
import sys, torch, torch.distributed as dist, torch.multiprocessing as mp

def rank_of(rank, path):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    kept = torch.zeros(100_000 * (rank + 1))
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(rank_of, (sys.argv[1],), 2)
"""


def test_ranks_that_the_program_spawns(tmp_path):
    (tmp_path / "spawned.py").write_text(SPAWNED)
    harness.execute([harness.COMMAND, "run", "-q", "-o", str(tmp_path / "job"), "--", harness.PYTHON, str(tmp_path / "spawned.py"), str(tmp_path / "meeting")],
                    env=jobs.ENVIRONMENT, timeout=120).ok()
    ranks = jobs.ranks_of(tmp_path / "job")
    assert (ranks["launcher"], ranks["world_size"], ranks["missing"], ranks["collectives"]) == ("the program", 2, [], 1)
    assert [one["peak_bytes"] >= 400_000 * (i + 1) for i, one in enumerate(ranks["ranks"])] == [True, True]
