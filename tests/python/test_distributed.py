"""Who a process is among many: arguments, then metadata, then one launcher's names, then a process alone."""

import warnings

import pytest

from gpumemprof import resolve_distributed_identity

ALONE = {"job_id": None, "rank": 0, "local_rank": 0, "world_size": 1}
TORCHRUN = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "run7"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
SLURM = {"SLURM_PROCID": "2", "SLURM_LOCALID": "0", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "991"}
MPICH = {"PMI_RANK": "1", "MPI_LOCALRANKID": "0", "PMI_SIZE": "2"}


def identity(job, rank, local, world):
    return {"job_id": job, "rank": rank, "local_rank": local, "world_size": world}


@pytest.mark.filterwarnings("ignore:.*no rank of such a world")
@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ALONE),
        (TORCHRUN, identity("run7", 5, 1, 8)),
        (OPEN_MPI, identity(None, 3, 3, 4)),
        (SLURM, identity("991", 2, 0, 16)),
        (MPICH, identity(None, 1, 0, 2)),
        ({**SLURM, **TORCHRUN}, identity("run7", 5, 1, 8)),
        ({**MPICH, **SLURM}, identity("991", 2, 0, 16)),
        ({"RANK": "5", **OPEN_MPI}, identity(None, 3, 3, 4)),  # a family with a hole is passed over
        ({"RANK": "1", "WORLD_SIZE": "2"}, identity(None, 1, 1, 2)),  # no local rank: one machine
        ({"RANK": "9", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}, ALONE),  # cannot be
        ({"RANK": "one", "WORLD_SIZE": "2"}, ALONE),
        ({"RANK": "٣", "WORLD_SIZE": "9" * 400}, ALONE),
    ],
)
def test_the_environment_of_a_launcher_is_taken_whole(env, expected):
    assert resolve_distributed_identity(env=env) == expected


def test_a_rank_that_cannot_be_is_said_and_one_that_is_not_set_is_not():
    with pytest.warns(RuntimeWarning) as said:
        assert resolve_distributed_identity(env={"RANK": "x", "WORLD_SIZE": "2"}) == ALONE
    assert [str(one.message) for one in said] == ["RANK=x WORLD_SIZE=2: no rank of such a world; taken as rank 0 of 1"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve_distributed_identity(env={"RANK": "5"}) == ALONE
        assert resolve_distributed_identity(env={"RANK": "x", "WORLD_SIZE": "2"}, rank=0, world_size=1) == ALONE


def test_arguments_come_before_metadata_and_metadata_before_the_environment():
    theirs = {"job_id": "theirs", "local_rank": 3, "rank": 5, "world_size": 8}
    found = resolve_distributed_identity(job_id="mine", local_rank=2, metadata=theirs, env=TORCHRUN)
    assert found == identity("mine", 5, 2, 8)
    assert resolve_distributed_identity(metadata={"job_id": "theirs"}, env=TORCHRUN)["job_id"] == "theirs"


def test_another_world_than_the_environments_takes_nothing_from_it():
    assert resolve_distributed_identity(rank=0, world_size=2, env=TORCHRUN) == identity("run7", 0, 0, 2)


def test_a_rank_alone_is_one_of_the_environments_world():
    assert resolve_distributed_identity(rank=6, env=TORCHRUN) == identity("run7", 6, 6, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 3}, "rank 3 must be < world_size 1; give world_size too"),
        ({"rank": 2, "world_size": 2}, "rank 2 must be < world_size 2"),
        ({"rank": -1}, "rank must be an integer >= 0"),
        ({"world_size": 0}, "world_size must be >= 1"),
        ({"rank": True}, "rank must be an integer"),
        ({"rank": 0, "local_rank": 4, "world_size": 4}, "local_rank 4 must be < world_size 4"),
    ],
)
def test_a_contradiction_is_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        resolve_distributed_identity(**arguments, env={})
