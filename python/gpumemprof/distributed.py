"""The rank and job of this process."""

from ._tracking.job_rank import resolve_distributed_identity as resolve_distributed_identity
