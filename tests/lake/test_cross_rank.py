"""What all ranks held at one time: against every event, sorted and added up one after the other."""

import concurrent.futures
import os

import harness
import lakes
import pyarrow.parquet as pq
import pytest

# Each holds more and then less, by sizes of its own.
RANK = """
import os, time, torch
rank = int(os.environ["RANK"])
kept = []
for step in range(40):
    kept.append(torch.empty(100_000 * (1 + (step * 7 + rank * 3) % 11), dtype=torch.uint8))
    if step % 3 == rank % 3:
        del kept[:2]
    time.sleep(0.002)
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("ranks")

    def record(rank):
        env = os.environ | {"RANK": str(rank)}
        return harness.record(folder / f"rank{rank}", [harness.PYTHON, "-c", RANK], env=env).ok().folder

    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(record, range(3)))


@pytest.fixture(scope="module")
def lake(recordings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    for recording in recordings:
        lakes.export(recording, folder)
    return folder


def plain(runs):
    """(most bytes, when, how many memories) of all events in the order of their times."""
    changes, memories = [], 0
    for run in runs:
        ranks = pq.read_table(run / "ranks.parquet").to_pylist()
        kinds = {(rank["backend"], rank["layer"]) for rank in ranks if rank["is_main"]}
        for rank in ranks:
            if (rank["backend"], rank["layer"]) not in kinds or (rank["peak_time_ns"] is None and rank["peak_event"] != 0):
                continue
            memories += 1
            offset = rank["wall_offset_ns"] or 0
            for row in pq.read_table(run / f"intervals.{rank['memory']}.parquet").to_pylist():
                place = (run.name, rank["memory"])
                changes.append(((row["birth_time_ns"] or 0) + offset, *place, row["birth_event"], row["size_bytes"]))
                if row["death_event"] is not None:
                    changes.append((row["death_time_ns"] + offset, *place, row["death_event"], -row["size_bytes"]))
            if rank["end_time_ns"] is not None:  # what it held is gone with its process
                changes.append((rank["end_time_ns"] + offset, run.name, rank["memory"], rank["events"] + 1, -rank["end_bytes"]))
    live, most, when = 0, -1, 0
    for time_ns, *_, size in sorted(changes):
        live += size
        if live > most:
            most, when = live, time_ns
    return most, when, memories


def test_it_is_the_most_that_all_held_at_one_time(lake):
    runs = sorted(lake.iterdir())
    ((peak, when, memories),) = [tuple(row.values()) for row in lakes.ask("SELECT * FROM cross_rank_peak('%')", lake)]
    assert (peak, when, memories) == plain(runs) and memories == 3
    assert peak <= sum(row["peak_bytes"] for row in lakes.ask("SELECT peak_bytes FROM ranks WHERE is_main", lake))


def test_it_is_the_same_where_the_ranks_are_one_run(recordings, lake, tmp_path):
    lakes.run(["export", *recordings, "--to", "parquet", "-o", tmp_path / "one", "--no-seal"]).ok()
    (apart,), (together,) = [lakes.ask("SELECT peak_bytes, memories FROM cross_rank_peak('%')", place) for place in (lake, tmp_path / "one")]
    assert together == apart and together["memories"] == 3


# Each keeps a tensor to its end. Rank 0 begins when rank 1 has ended.
KEEPS = """
import ctypes, os, torch
kept = torch.empty((32_000_000, 48_000_000)[int(os.environ["RANK"])], dtype=torch.uint8)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
"""


def test_what_a_rank_held_is_gone_with_its_process(tmp_path):
    pytest.importorskip("torch")
    for rank in (1, 0):
        env = os.environ | {"RANK": str(rank)}
        recording = harness.record(tmp_path / f"rank{rank}", [harness.PYTHON, "-c", KEEPS], env=env).ok().folder
        lakes.export(recording, tmp_path / "lake")
    ends = lakes.ask("SELECT end_bytes FROM ranks ORDER BY rank", tmp_path / "lake")
    assert [row["end_bytes"] for row in ends] == [32_000_000, 48_000_000]
    (row,) = lakes.ask("SELECT * FROM cross_rank_peak('%')", tmp_path / "lake")
    assert (row["peak_bytes"], row["memories"]) == (48_000_000, 2)


def test_of_one_rank_it_is_the_peak_of_analyze(lake):
    for run in lake.iterdir():
        (row,) = lakes.ask(f"SELECT * FROM cross_rank_peak('{run.name}')", lake)
        (rank,) = lakes.ask(f"SELECT peak_bytes FROM ranks WHERE is_main AND run = '{run.name}'", lake)
        assert (row["peak_bytes"], row["memories"]) == (rank["peak_bytes"], 1)


@pytest.mark.parametrize("path", [*lakes.RECORDINGS, *lakes.SNAPSHOTS], ids=lambda path: path.name)
def test_of_any_one_file_it_is_its_peak(path, tmp_path):
    run = lakes.export(path, tmp_path / "lake")
    wanted = plain([run])
    rows = lakes.ask("SELECT * FROM cross_rank_peak('%')", tmp_path / "lake")
    if wanted[2] == 1:
        (rank,) = lakes.ask("SELECT peak_bytes, peak_time_ns, peak_event FROM ranks WHERE is_main", tmp_path / "lake")
        if rank["peak_time_ns"] is not None:
            assert rows[0]["peak_bytes"] == rank["peak_bytes"] == wanted[0]


def test_of_no_run_there_is_none(lake):
    assert lakes.ask("SELECT * FROM cross_rank_peak('nobody')", lake) == []
