"""Which rank of which job this process is."""

from ._tracking.job_rank import resolve_distributed_identity as resolve_distributed_identity
