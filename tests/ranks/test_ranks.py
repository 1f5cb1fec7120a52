"""The ranks of a job as one run: real torchrun with four ranks on the CPU. What is expected follows from sizes of tensors, by hand."""
import collections
import json

import jsonschema
import pytest

import harness
import rank_jobs as jobs

MLP = 256 * 1024 + 1024 + 1024 * 256 + 256  # numbers of layers()
FLOAT = 4


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp("jobs") / kind
            jobs.record(made[kind], kind).ok()
        return made[kind]

    return get


def kinds(ranks):
    return [one["kind"] for one in ranks["parallelism"]]


def sum_of_live_bytes(folder):
    """The most that all processes held at one moment, and each then: over the exported events, one by one."""
    done = harness.execute([harness.COMMAND, "export", str(folder), "--to", "jsonl", "-o", "-"], timeout=120).ok()
    live, of_process, most = {}, collections.Counter(), (0, {})
    for line in done.stdout.splitlines():
        event = json.loads(line)
        if event["device"] != "cpu":
            continue
        block = (event["process"], event["address"])
        if event["action"] == "alloc":
            live[block] = event["size_bytes"]
            of_process[event["process"]] += event["size_bytes"]
        elif block in live:
            of_process[event["process"]] -= live.pop(block)
        total = sum(of_process.values())
        if total > most[0]:
            most = (total, dict(of_process))
    return most


def test_data_parallel(folders):
    report = jobs.analyze(folders("data"))
    jsonschema.validate(report, json.loads((harness.ROOT / "docs/schemas/analysis.schema.json").read_text()))
    ranks = report["ranks"]
    assert (ranks["launcher"], ranks["world_size"], ranks["missing"], ranks["hosts"]) == ("torchrun", 4, [], 1)
    assert [(one["rank"], one["local_rank"], one["end"], one["steps"]) for one in ranks["ranks"]] == [
        (i, i, "exited", 10) for i in range(4)]
    assert [one["parameter_bytes"] for one in ranks["ranks"]] == [MLP * FLOAT] * 4
    # It keeps 4 MB a step more than the others, which all do the same.
    assert ranks["highest_rank"] == 2
    assert ranks["lines_above_median"][0]["line"].startswith(f"{jobs.PROGRAM}:") and "step" in ranks["lines_above_median"][0]["line"]
    assert (ranks["lines_above_median"][0]["bytes"], ranks["lines_above_median"][0]["median_bytes"]) == (40_000_000, 0)
    assert [one["rank"] for one in ranks["stragglers"]] == [2]
    assert kinds(ranks) == ["data"]
    assert [clock["error_ns"] for clock in ranks["clocks"]] == [0]


def test_the_answer_begins_with_which_rank_and_how_far_from_the_median(folders):
    text = jobs.analyze(folders("data"), output="text").splitlines()
    assert ", rank 2 (process" in text[0]
    assert text[1].startswith("Rank 2 is ") and "above the median of 4 ranks" in text[1] and "divided.py:" in text[1]
    assert "holds 38.1 MiB there, against a median of 0 B." in text[1]  # 40 MB


def test_all_ranks_together(folders):
    ranks = jobs.ranks_of(folders("data"))
    most, of_process = sum_of_live_bytes(folders("data"))
    assert ranks["job_peak_bytes"] == most
    assert {one["pid"]: one["at_job_peak_bytes"] for one in ranks["ranks"]} == {one["pid"]: of_process[one["pid"]] for one in ranks["ranks"]}


# Each keeps a tensor to its end. Rank 0 begins when rank 1 has ended.
KEEPS = """
import ctypes, os, torch
kept = torch.empty((32_000_000, 48_000_000)[int(os.environ["RANK"])], dtype=torch.uint8)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
"""


def test_what_a_rank_still_held_ends_with_its_process(tmp_path):
    for rank in (1, 0):
        environment = {**jobs.ENVIRONMENT, "RANK": str(rank), "WORLD_SIZE": "2"}
        harness.record(tmp_path / str(rank), [harness.PYTHON, "-c", KEEPS], env=environment).ok()
    report = jobs.analyze(tmp_path / "0", tmp_path / "1")
    ranks = report["ranks"]
    assert [one["peak_bytes"] for one in ranks["ranks"]] == [32_000_000, 48_000_000]
    assert ranks["job_peak_bytes"] == 48_000_000
    assert [one["at_job_peak_bytes"] for one in ranks["ranks"]] == [0, 48_000_000]


def test_sharded(folders):
    ranks = jobs.ranks_of(folders("sharded"))
    assert kinds(ranks) == ["sharded"]
    assert "torch/distributed/fsdp/" in ranks["parallelism"][0]["evidence"]
    assert [one["parameter_bytes"] for one in ranks["ranks"]] == [2 * MLP * FLOAT // 4] * 4


def test_pipeline(folders):
    ranks = jobs.ranks_of(folders("pipeline"))
    assert kinds(ranks) == ["pipeline"]
    assert "4 different sets of parameters" in ranks["parallelism"][0]["evidence"]
    assert [one["parameter_bytes"] for one in ranks["ranks"]] == [(i + 1) * MLP * FLOAT for i in range(4)]
    assert ranks["highest_rank"] == 3


def test_tensor_parallel(folders):
    ranks = jobs.ranks_of(folders("tensor"))
    assert kinds(ranks) == ["tensor"]
    assert "4 of 6 parameters" in ranks["parallelism"][0]["evidence"] or "3 of 6 parameters" in ranks["parallelism"][0]["evidence"]
    each = 2 * 256 + (256 * 1024 + 1024 + 1024 * 256) // 4 + 256
    assert [one["parameter_bytes"] for one in ranks["ranks"]] == [each * FLOAT] * 4


@pytest.mark.slow
def test_expert_parallel(folders):
    ranks = jobs.ranks_of(folders("expert"))
    assert kinds(ranks)[0] == "expert"
    assert "16 parameters of experts" in ranks["parallelism"][0]["evidence"]
    assert [one["parameter_bytes"] for one in ranks["ranks"]] == [(256 * 8 + 8 + 2 * (256 * 256 + 256)) * FLOAT] * 4
    assert ranks["highest_rank"] == 3


def test_replaced_names_tell_nothing_of_how_it_is_divided(folders):
    done = harness.execute([harness.COMMAND, "analyze", str(folders("pipeline")), "--format", "json", "--anonymize"], timeout=120).ok()
    ranks = json.loads(done.stdout)["ranks"]
    assert (ranks["parallelism"], ranks["unknown"]["parallelism"]) == ([], "names are replaced")
