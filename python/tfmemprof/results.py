"""What profiling gives, in TensorFlow's words: sizes in MiB, devices as `/GPU:0`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from gpumemprof._profiling import results as _bytes

MIB = float(1 << 20)


@dataclass
class MemorySnapshot(_bytes.MemorySnapshot):
    """One moment of a device. The fields are gpumemprof's, in bytes; the properties below are the same in MiB.

    TensorFlow does not report reserved memory: reserved is what is in use.
    """

    @classmethod
    def of(cls, snapshot: _bytes.MemorySnapshot) -> MemorySnapshot:
        """The same moment with these words."""
        return cls(**{f.name: getattr(snapshot, f.name) for f in fields(_bytes.MemorySnapshot)})

    @property
    def name(self) -> str | None:
        """What was being done: the name that was given, or that of the call."""
        return self.operation

    @property
    def operation_name(self) -> str | None:
        """Another word for `name`."""
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
    """What `TFMemoryProfiler.get_results()` gives. Times in seconds since 1970, sizes with `_mb` in MiB.

    `peak_memory_mb` is the highest that the device was since the profiler was made or reset, profiled or not;
    `peak_is_exact` says whether that is the peak, and `basis_reason` what it is else. Average and least are those of
    the snapshots before and after every call, and of those that were taken between. `total_allocations` and
    `total_deallocations` count blocks in profiled calls, nested ones once for each; None without exact counting.
    `function_profiles` has sums by name, in bytes and seconds. `tensor_lifecycle` lists the tensors that were tracked
    by name. `memory_fragmentation` is None: TensorFlow does not report sizes of free blocks.
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
        """MiB a second, from the first snapshot to the last; None with less than two."""
        if len(self.snapshots) < 2:
            return None
        first, last = self.snapshots[0], self.snapshots[-1]
        seconds = last.timestamp - first.timestamp
        return (last.gpu_memory_mb - first.gpu_memory_mb) / seconds if seconds > 0 else None

    @property
    def efficiency_score(self) -> float | None:
        """0 to 10, as MemoryAnalyzer.analyze_efficiency; None where nothing can be judged."""
        from .analyzer import MemoryAnalyzer

        return MemoryAnalyzer().analyze_efficiency(self)

    def get_summary(self) -> dict[str, Any]:
        """GPUMemoryProfiler.get_summary() of the same moment: bytes, seconds, counts."""
        return self.summary

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: the fields but `results` and `summary`, and the two properties."""
        names = [f.name for f in fields(self) if f.name not in ("snapshots", "results", "summary")]
        rest = {"duration": self.duration, "memory_growth_rate": self.memory_growth_rate}
        return {name: getattr(self, name) for name in names} | rest | {
            "snapshots": [snapshot.to_dict() for snapshot in self.snapshots]
        }  # fmt: skip
