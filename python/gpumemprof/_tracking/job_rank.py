"""The rank and job of this process."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from .._core.columns import side_by_side

# A launcher sets all of its names or none, so a family is taken whole: the rank of one launcher beside the world
# size of another (torchrun inside a SLURM allocation) would name a process that does not exist.
_FAMILIES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("RANK", ("LOCAL_RANK",), "WORLD_SIZE"),  # torchrun, DeepSpeed, Accelerate
    ("OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_LOCAL_RANK",), "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", ("SLURM_LOCALID",), "SLURM_NTASKS"),
    ("PMI_RANK", ("MPI_LOCALRANKID", "PMI_LOCAL_RANK"), "PMI_SIZE"),  # MPICH, Intel MPI
)
_JOB_NAMES = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_FIELDS = ("rank", "local_rank", "world_size")


def resolve_distributed_identity(
    *,
    job_id: str | None = None,
    rank: int | None = None,
    local_rank: int | None = None,
    world_size: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The identity as {"job_id": str | None, "rank": int, "local_rank": int, "world_size": int}.

    Precedence per field: the arguments, the keys of the same names in `metadata`, the environment (`env`, default
    `os.environ`), otherwise a single process: rank 0 of 1. In the environment the first complete and consistent family
    counts: RANK/LOCAL_RANK/WORLD_SIZE, OMPI_COMM_WORLD_*, SLURM_PROCID/LOCALID/NTASKS, PMI_RANK/PMI_SIZE. The job is
    TORCHELASTIC_RUN_ID or SLURM_JOB_ID. A missing local rank equals the rank, as on one machine. Raises ValueError if
    arguments or metadata contradict each other (rank >= world_size). A RuntimeWarning names a rank and a world size of
    the environment that were set and cannot be.
    """
    given = dict(side_by_side(_FIELDS, (rank, local_rank, world_size)))
    for name in _FIELDS:
        if given[name] is None and metadata is not None and metadata.get(name) is not None:
            given[name] = metadata[name]
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ValueError(f"{name} must be an integer >= 0, not {value!r}")
    if given["world_size"] == 0:
        raise ValueError("world_size must be >= 1")

    environment = os.environ if env is None else env
    found = _from_environment(environment)
    if not found and given["rank"] is None and given["world_size"] is None:
        _warn_of_what_cannot_be(environment)
    # The environment speaks of one world only: beside arguments that name another one it says nothing.
    if all(found.get(n) == given[n] for n in ("rank", "world_size") if given[n] is not None):
        for name in _FIELDS:
            given[name] = found.get(name) if given[name] is None else given[name]
    elif given["world_size"] is None and found and given["rank"] is not None and given["rank"] < found["world_size"]:
        given["world_size"] = found["world_size"]

    result_rank = given["rank"] or 0
    result_world = given["world_size"] or 1
    # With one process a local rank can only be 0; otherwise one machine is assumed where nothing says more.
    result_local = given["local_rank"] if given["local_rank"] is not None else result_rank
    for name, value in (("rank", result_rank), ("local_rank", result_local)):
        if value >= result_world:
            hint = "; give world_size too" if given["world_size"] is None else ""
            raise ValueError(f"{name} {value} must be < world_size {result_world}{hint}")
    return {
        "job_id": _job(job_id, metadata, environment),
        "rank": result_rank,
        "local_rank": result_local,
        "world_size": result_world,
    }


def _from_environment(environment: Mapping[str, str]) -> dict[str, int]:
    """The first family that is whole: {"rank", "local_rank", "world_size"}, or {}."""
    for rank_name, local_names, size_name in _FAMILIES:
        rank, size = _integer(environment.get(rank_name)), _integer(environment.get(size_name))
        if rank is None or size is None or rank >= size:
            continue
        locals_named = [n for n in (_integer(environment.get(name)) for name in local_names) if n is not None]
        local = locals_named[0] if locals_named and locals_named[0] < size else rank
        return {"rank": rank, "local_rank": local, "world_size": size}
    return {}


def _warn_of_what_cannot_be(environment: Mapping[str, str]) -> None:
    for rank, _, size in _FAMILIES:
        if environment.get(rank) and environment.get(size):
            values = f"{rank}={environment[rank]:.40} {size}={environment[size]:.40}"
            warnings.warn(f"{values}: no rank of such a world; taken as rank 0 of 1", RuntimeWarning, stacklevel=3)
            return


def _integer(text: str | None) -> int | None:
    """A count as a launcher writes it; anything else is as if it were not there."""
    return int(text) if text and len(text) <= 9 and text.isascii() and text.isdigit() else None


def _job(job_id: str | None, metadata: Mapping[str, Any] | None, environment: Mapping[str, str]) -> str | None:
    if job_id is not None:
        return str(job_id)
    if metadata is not None and metadata.get("job_id") is not None:
        return str(metadata["job_id"])
    return next((environment[name] for name in _JOB_NAMES if environment.get(name)), None)
