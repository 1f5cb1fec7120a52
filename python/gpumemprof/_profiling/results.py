"""MemorySnapshot, one moment, and ProfileResult, one call or block. All sizes in bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.printed import format_size, table
from .._counting.devices import Device
from .._counting.spans import OTHERS_WHILE_AWAITING, Raw, Reading, Source, figures_of


@dataclass
class MemorySnapshot:
    """A device's memory at one moment, in bytes.

    `allocated_memory` is the memory of tensors and `reserved_memory` what the allocator holds for them. The CPU has no
    pool, so both are the same: the bytes of CPU tensors if `basis` is "exact", the process's resident memory if it is
    "host". `inactive_memory` is cached and unused: reserved − active. `max_*` are the highest values known to the
    source. `cpu_memory` is the process's resident memory, at most a millisecond old; 0 if it was not requested.
    `timestamp` is in seconds since 1970; `device_id` is -1 for the CPU.
    """

    timestamp: float
    allocated_memory: int
    reserved_memory: int
    max_memory_allocated: int
    max_memory_reserved: int
    active_memory: int
    inactive_memory: int
    cpu_memory: int
    device_id: int = 0
    operation: str | None = None
    stack_trace: str | None = None
    basis: str = "unknown"

    @property
    def gpu_memory_mb(self) -> float:
        """`allocated_memory` in MiB."""
        return self.allocated_memory / 2**20

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, in bytes and seconds."""
        return asdict(self)


def snapshot_of(
    reading: Reading,
    time_s: float,
    device: Device,
    basis: str,
    cpu_bytes: int,
    operation: str | None,
    stack: str | None = None,
) -> MemorySnapshot:
    """A reading of a source as a snapshot."""
    return MemorySnapshot(
        timestamp=time_s,
        allocated_memory=reading.allocated_bytes,
        reserved_memory=reading.reserved_bytes,
        max_memory_allocated=reading.max_allocated_bytes,
        max_memory_reserved=reading.max_reserved_bytes,
        active_memory=reading.active_bytes,
        inactive_memory=reading.inactive_bytes,
        cpu_memory=cpu_bytes,
        device_id=device.index,
        operation=operation,
        stack_trace=stack,
        basis=basis,
    )


@dataclass
class ProfileResult:
    """One profiled call or block. Bytes, seconds, counts.

    `memory_allocated`, `memory_freed`, `tensors_created` and `tensors_deleted` are sums over the call on its device, by
    all threads, because autograd uses its own. A count that `basis` cannot provide is None. `memory_peak` is the
    device's highest during the call; `peak_is_exact` says whether that is the peak or a lower bound, and `basis_reason`
    why. `own_*` is what the call's own thread and context allocated, None without exact counting. `execution_time` and
    sums of a generator or coroutine count only while it runs; a `with` block in a coroutine also has what other tasks
    do while it waits, and `basis_reason` says so. `error` names the exception that ended it.
    """

    function_name: str
    execution_time: float
    memory_before: MemorySnapshot
    memory_after: MemorySnapshot
    memory_peak: MemorySnapshot
    memory_allocated: int
    memory_freed: int
    tensors_created: int | None
    tensors_deleted: int | None
    # Factories, not plain defaults: those would be attributes of the class, and hide what __getattr__ fills in.
    call_count: int = field(default_factory=lambda: 1)
    basis: str = field(default_factory=lambda: "unknown")
    basis_reason: str = field(default_factory=str)
    peak_is_exact: bool = field(default_factory=bool)
    own_peak_bytes: int | None = field(default_factory=lambda: None)
    own_allocated_bytes: int | None = field(default_factory=lambda: None)
    own_freed_bytes: int | None = field(default_factory=lambda: None)
    own_tensors_created: int | None = field(default_factory=lambda: None)
    own_tensors_deleted: int | None = field(default_factory=lambda: None)
    error: str | None = field(default_factory=lambda: None)

    @classmethod
    def of(cls, ended: Raw, source: Source) -> ProfileResult:
        """The result of a measurement, worked out when the first field is read: that costs more than a call may."""
        result = object.__new__(cls)
        result.__dict__["_ended"] = ended, source
        return result

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not there: the fields of a result that nobody has looked at yet.
        ended = self.__dict__.get("_ended")
        if ended is None or name not in type(self).__dataclass_fields__:
            if name in self.__dict__:  # another thread was as fast
                return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # All at once, and only then is the measurement given up: two threads may read the same result first.
        self.__dict__.update(_fields_of(*ended))
        self.__dict__.pop("_ended", None)
        return self.__dict__[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the profiled function again, profiled, and returns what it returns.

        So a function without parameters works below `@profiler.profile_function` too, which has run it once.
        """
        again = self.__dict__.get("_again")
        if again is None:
            raise TypeError("this result does not belong to a callable function")
        return again(*args, **kwargs)

    def memory_diff(self) -> int:
        """Allocated bytes after − before."""
        return self.memory_after.allocated_memory - self.memory_before.allocated_memory

    def peak_memory_usage(self) -> int:
        """Highest allocated bytes of the device during the call, including what was allocated before it.

        Of the CPU: bytes of tensors if `basis` is "exact", else the process's resident memory."""
        return self.memory_peak.allocated_memory

    def peak_over_start(self) -> int:
        """The same less the allocated bytes at the start of the call, in bytes: the call's own need."""
        return max(self.memory_peak.allocated_memory - self.memory_before.allocated_memory, 0)

    def __str__(self) -> str:
        tensors = "" if self.tensors_created is None else f" in {self.tensors_created:,} tensor{'s' * (self.tensors_created != 1)}"
        least = "" if self.peak_is_exact else "at least "
        peak = f"{least}{format_size(self.peak_over_start())} over the start, {format_size(self.peak_memory_usage())} in all"
        rows = [
            (self.function_name, f"{self.execution_time * 1e3:.3f} ms" + (f", {self.error}" if self.error else "")),
            ("peak", peak),
            ("allocated", format_size(self.memory_allocated) + tensors),
            ("freed", format_size(self.memory_freed)),
            ("figures", f"{self.basis}: {self.basis_reason}"),
        ]
        if self.own_peak_bytes is not None and self.own_peak_bytes != self.peak_over_start():
            # Other threads, or what consumed the values of a generator, allocated meanwhile.
            rows.insert(2, ("of its own", f"at most {format_size(self.own_peak_bytes)} at once"))
        return table(rows)

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, with `memory_diff` and `peak_memory_usage`."""
        return {**asdict(self), "memory_diff": self.memory_diff(), "peak_memory_usage": self.peak_memory_usage(),
                "peak_over_start": self.peak_over_start()}


def _fields_of(ended: Raw, source: Source) -> dict[str, Any]:
    """The fields of the ProfileResult of a measurement that ended."""
    raw, name, duration_ns, time_s, end_time_s, rss, end_rss, error, stack, counts, in_context = ended
    figures = figures_of(source, raw)
    device, basis, own = source.device, source.basis, figures.own
    reason = figures.basis_reason
    if in_context and (own is None or own.alloc_bytes != figures.allocated_bytes):
        reason += OTHERS_WHILE_AWAITING + ("" if own is None else "; own_* does not")
    if end_time_s is None:
        end_time_s = time_s + duration_ns / 1e9
    before = snapshot_of(figures.before, time_s, device, basis, rss, name, stack)
    after = snapshot_of(figures.after, end_time_s, device, basis, end_rss, name, stack)
    # At the peak only the allocated bytes are known. Of the rest the higher of before and after was reached, and it is
    # never less than what is allocated.
    peak = snapshot_of(figures.after, end_time_s, device, basis, max(rss, end_rss), name, stack)
    peak.allocated_memory = figures.peak_bytes
    peak.max_memory_allocated = max(peak.max_memory_allocated, figures.peak_bytes)
    peak.reserved_memory = max(before.reserved_memory, after.reserved_memory, figures.peak_bytes)
    peak.max_memory_reserved = max(peak.max_memory_reserved, peak.reserved_memory)
    peak.active_memory = max(before.active_memory, after.active_memory, figures.peak_bytes)
    peak.inactive_memory = max(peak.reserved_memory - peak.active_memory, 0)
    return {
        "function_name": name,
        "execution_time": duration_ns / 1e9,
        "memory_before": before,
        "memory_after": after,
        "memory_peak": peak,
        "memory_allocated": figures.allocated_bytes,
        "memory_freed": figures.freed_bytes,
        "tensors_created": figures.created if counts else None,
        "tensors_deleted": figures.deleted if counts else None,
        "call_count": 1,
        "basis": basis,
        "basis_reason": reason,
        "peak_is_exact": figures.peak_is_exact,
        "own_peak_bytes": own and own.peak_bytes,
        "own_allocated_bytes": own and own.alloc_bytes,
        "own_freed_bytes": own and own.free_bytes,
        "own_tensors_created": own and own.alloc_count,
        "own_tensors_deleted": own and own.free_count,
        "error": error,
    }
