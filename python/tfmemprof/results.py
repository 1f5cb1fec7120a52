"""Results of profiling in TensorFlow's terms: sizes in MiB, devices as `/GPU:0`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from gpumemprof._profiling import results as _bytes

MIB = float(1 << 20)


@dataclass
class MemorySnapshot(_bytes.MemorySnapshot):
    """A device's memory at one moment. The fields are gpumemprof's, in bytes; the properties below are in MiB.

    TensorFlow does not report reserved memory: reserved equals the bytes in use.
    """

    @classmethod
    def of(cls, snapshot: _bytes.MemorySnapshot) -> MemorySnapshot:
        """The same moment with these words."""
        return cls(**{f.name: getattr(snapshot, f.name) for f in fields(_bytes.MemorySnapshot)})

    @property
    def name(self) -> str | None:
        """The given name, or that of the call."""
        return self.operation

    @property
    def operation_name(self) -> str | None:
        """Same as `name`."""
        return self.operation

    @property
    def gpu_memory_reserved_mb(self) -> float:
        """`reserved_memory` in MiB."""
        return self.reserved_memory / MIB

    @property
    def cpu_memory_mb(self) -> float:
        """The process's resident memory in MiB."""
        return self.cpu_memory / MIB


@dataclass
class ProfileResult:
    """The result of `TFMemoryProfiler.get_results()`. Times in seconds since 1970, sizes with `_mb` in MiB.

    `peak_memory_mb` is the device's highest since the profiler was created or reset, profiled or not. `peak_is_exact`
    says whether that is the peak; if not, `basis_reason` says what it is. Average and minimum are those of the
    snapshots before, during and after calls. `total_allocations` and `total_deallocations` count blocks in profiled
    calls, those of nested calls once; None without exact counting. `function_profiles` has sums by name, in bytes
    and seconds. `tensor_lifecycle` lists the tensors tracked by name. `memory_fragmentation` is None, because
    TensorFlow does not report sizes of free blocks.
    """

    start_time: float
    end_time: float
    peak_memory_mb: float
    average_memory_mb: float | None
    min_memory_mb: float | None
    total_allocations: int | None
    total_deallocations: int | None
    snapshots: list[MemorySnapshot]
    function_profiles: dict[str, dict[str, Any]]
    tensor_lifecycle: dict[str, dict[str, Any]]
    basis: str
    basis_reason: str
    peak_is_exact: bool
    device: str
    memory_fragmentation: float | None = None
    results: list[_bytes.ProfileResult] = field(default_factory=list, repr=False)
    summary: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return self.end_time - self.start_time

    @property
    def memory_growth_rate(self) -> float | None:
        """MiB per second from the first snapshot to the last; None with fewer than two."""
        if len(self.snapshots) < 2:
            return None
        first, last = self.snapshots[0], self.snapshots[-1]
        seconds = last.timestamp - first.timestamp
        return (last.gpu_memory_mb - first.gpu_memory_mb) / seconds if seconds > 0 else None

    @property
    def efficiency_score(self) -> float | None:
        """0 to 10, like MemoryAnalyzer.analyze_efficiency; None if nothing can be judged."""
        from .analyzer import MemoryAnalyzer

        return MemoryAnalyzer().analyze_efficiency(self)

    def get_summary(self) -> dict[str, Any]:
        """GPUMemoryProfiler.get_summary() of the same moment: bytes, seconds, counts."""
        return self.summary

    def to_dict(self) -> dict[str, Any]:
        """As JSON: the fields except `results` and `summary`, and the two properties."""
        names = [f.name for f in fields(self) if f.name not in ("snapshots", "results", "summary")]
        rest = {"duration": self.duration, "memory_growth_rate": self.memory_growth_rate}
        return {name: getattr(self, name) for name in names} | rest | {
            "snapshots": [snapshot.to_dict() for snapshot in self.snapshots]
        }  # fmt: skip
