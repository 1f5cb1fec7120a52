"""Processes that a launcher numbered are named by their rank, in every report of the recording."""

import harness
import pytest

pytest.importorskip("torch")
JOB = """
for rank in 0 1; do
    RANK=$rank {python} -c "import torch; kept = torch.zeros(1000 * (1 + $rank))"
done
RANK=none {python} -c "import torch; kept = torch.zeros(10)"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    job = JOB.format(python=harness.PYTHON)
    return harness.record(tmp_path_factory.mktemp("job") / "r", ["sh", "-c", job]).ok().folder


def test_json_has_the_rank_where_there_is_one(folder):
    said = harness.analysis(folder)
    peaks = {device["process"]: device["peak"]["allocated_bytes"] for device in said["devices"]}
    assert {process["rank"]: peaks[process["pid"]] for process in said["processes"]} == {0: 4000, 1: 8000, None: 40}


def test_the_headline_and_the_table_of_devices_name_ranks(folder):
    text = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode()
    of = {process["rank"]: process["pid"] for process in harness.analysis(folder)["processes"]}
    assert text.splitlines()[0].startswith("Peak 7.81 KiB on cpu, ")
    assert text.splitlines()[0].endswith(f", rank 1 (process {of[1]})")
    rows = text.split("Devices\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [row.split("  cpu, ")[1] for row in rows[:2]] == [f"rank {rank} (process {of[rank]})" for rank in (1, 0)]
    assert f"cpu, process {of[None]} (" in rows[2]
