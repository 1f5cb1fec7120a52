"""The sources of a tracker's figures: one collector per kind of device.

No collector synchronizes a device or initializes CUDA. What a device does not report is None. `used_bytes` is the
device's use by all processes, as its driver reports it; `allocated_bytes` and `reserved_bytes` are this process's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from .._core.torch import loaded_torch, require_torch
from . import probe_counters, quiet_cuda
from .accelerators import device_memory
from .devices import kind_of
from .host_memory import HostMemory
from .host_source import resident_bytes


@dataclass(frozen=True)
class DeviceMemorySample:
    """One sample of a device in bytes; None is unknown."""

    allocated_bytes: int | None
    reserved_bytes: int | None
    used_bytes: int | None
    free_bytes: int | None
    total_bytes: int | None
    active_bytes: int | None
    inactive_bytes: int | None
    device_id: int


@dataclass(frozen=True)
class DeviceMemorySampleResult:
    """A sample with its missing fields: field -> reason. If `core_error` is set there is no sample."""

    sample: DeviceMemorySample | None
    partial_fields: tuple[str, ...] = ()
    errors: dict[str, str] | None = None
    core_error: str | None = None

    @property
    def is_partial(self) -> bool:
        return bool(self.partial_fields)

    @property
    def is_core_failure(self) -> bool:
        return self.core_error is not None


@dataclass(frozen=True)
class AllocatorTotals:
    """Counts and bytes of allocations and frees since a fixed moment, exact; only differences are meaningful."""

    alloc_count: int
    free_count: int
    alloc_bytes: int
    free_bytes: int


class DeviceMemoryCollector(ABC):
    """Reads one device. `basis` is "exact", "framework" or "host"; `basis_reason` explains it."""

    device_id: int = -1
    basis = "framework"
    basis_reason = ""

    @abstractmethod
    def name(self) -> str:
        """"cuda", "rocm", "mps" or "cpu"."""

    @abstractmethod
    def is_available(self) -> bool: ...

    @abstractmethod
    def _read(self, missing: dict[str, str]) -> DeviceMemorySample:
        """One sample; puts a reason into `missing` for every field that is None."""

    def sample(self) -> DeviceMemorySample:
        """One sample. Raises RuntimeError if the device cannot be read."""
        return self._read({})

    def sample_with_diagnostics(self) -> DeviceMemorySampleResult:
        """Like `sample`, but never raises: missing fields are named with the reason."""
        missing: dict[str, str] = {}
        try:
            sample = self._read(missing)
        except Exception as error:  # a driver's, PyTorch's, the system's
            return DeviceMemorySampleResult(None, core_error=f"{type(error).__name__}: {error}")
        absent = tuple(f.name for f in fields(sample) if getattr(sample, f.name) is None)
        why = {n: missing.get(n, "not reported by the device") for n in absent}
        return DeviceMemorySampleResult(sample, absent, why)

    def refresh(self) -> None:
        """Called when tracking begins: a better source may have become available since (`gpumemprof.attach`)."""

    def totals(self) -> AllocatorTotals | None:
        """Counts of allocations and frees so far; None if nothing counts them."""
        return None

    def peak_so_far_bytes(self) -> int | None:
        """A high-water mark of allocated_bytes that includes peaks between samples; None if there is none."""
        return None

    def allocated_now(self) -> int | None:
        """allocated_bytes alone, as fast as possible."""
        return self.sample().allocated_bytes

    def peak_watch(self) -> probe_counters.PeakWatch | None:
        """Finds the peak between two samples from allocator events; None if they are not counted."""
        return None

    def telemetry_name(self) -> str:
        """The value of `collector` in telemetry."""
        return f"gpumemprof.{self.name()}_tracker"

    def capabilities(self) -> dict[str, Any]:
        """The fields that samples of this collector have. The first five keys are those of the documented interface."""
        present = self.sample_with_diagnostics()
        sample = present.sample
        return {
            "backend": self.name(),
            "supports_device_total": sample is not None and sample.total_bytes is not None,
            "supports_device_free": sample is not None and sample.free_bytes is not None,
            "sampling_source": self._source(),
            "telemetry_collector": self.telemetry_name(),
            "supports_device_used": sample is not None and sample.used_bytes is not None,
            "supports_reserved": sample is not None and sample.reserved_bytes is not None,
            "supports_active": sample is not None and sample.active_bytes is not None,
            "supports_exact_counts": self.totals() is not None,
            "basis": self.basis,
            "basis_reason": self.basis_reason,
            "missing": dict(present.errors or {}),
        }

    def _source(self) -> str:
        return "torch"


class CudaDeviceCollector(DeviceMemoryCollector):
    """An NVIDIA GPU through PyTorch: the caching allocator's counters, and cudaMemGetInfo for the device; NVML while
    this process has no context on the device."""

    def __init__(self, device: Any = None) -> None:
        self._torch = require_torch("the memory of a GPU")
        self._device = quiet_cuda.cuda_device(self._torch, device)
        self.basis, self.basis_reason = "framework", "counters of PyTorch's caching allocator"

    @property
    def device_id(self) -> int:  # type: ignore[override]
        """-1 if no device was named and the program has not initialized CUDA yet."""
        return self._device.index

    def name(self) -> str:
        return "cuda"

    def is_available(self) -> bool:
        return bool(self._torch.cuda.is_available())

    def _read(self, missing: dict[str, str]) -> DeviceMemorySample:
        cuda, index, of_device = self._torch.cuda, self.device_id, ("used_bytes", "free_bytes", "total_bytes")
        used: int | None = None
        free: int | None = None
        total: int | None = None
        if index < 0 or not cuda.is_initialized():
            # Asking CUDA would bring up a context: hundreds of MB, and no fork after it. The driver needs none.
            used, free, total = self._from_driver(index, missing, "CUDA is not initialised in this process yet")
            return DeviceMemorySample(0, 0, used, free, total, 0, 0, index)
        stats = self._stats()
        try:
            if quiet_cuda.has_context(self._torch, index, stats.get("reserved_bytes.all.current", 0)):
                with quiet_cuda.relaxed_capture():
                    free, total = (int(v) for v in cuda.mem_get_info(index))
                    used = total - free
            else:
                why = "this process has not used the device yet; a query would create a context on it"
                used, free, total = self._from_driver(index, missing, why)
        except Exception as error:  # an error of the driver must not end the sampling
            missing.update(dict.fromkeys(of_device, f"cudaMemGetInfo: {type(error).__name__}"))
        return DeviceMemorySample(
            allocated_bytes=stats.get("allocated_bytes.all.current", 0),
            reserved_bytes=stats.get("reserved_bytes.all.current", 0),
            used_bytes=used,
            free_bytes=free,
            total_bytes=total,
            active_bytes=stats.get("active_bytes.all.current"),
            inactive_bytes=stats.get("inactive_split_bytes.all.current"),
            device_id=index,
        )

    def _from_driver(self, index: int, missing: dict[str, str], why: str) -> tuple[int | None, int | None, int | None]:
        """Used, free and total as the driver tells them to anybody; `why` CUDA was not asked, where it does not."""
        names = ("used_bytes", "free_bytes", "total_bytes")
        # Which of several GPUs the program will use, it has not said yet.
        undecided = index < 0 and int(self._torch.cuda.device_count()) != 1
        found: dict[str, Any] = {"accelerator": None} if undecided else device_memory(max(index, 0))
        if found["accelerator"] is None:
            missing.update(dict.fromkeys(names, why))
            return None, None, None
        missing.update({name: found["unknown"][name] for name in names if found[name] is None})
        used, free, total = (found[name] for name in names)
        return used, free, total

    def allocated_now(self) -> int | None:
        return int(self._stats().get("allocated_bytes.all.current", 0))

    def totals(self) -> AllocatorTotals | None:
        stats = self._stats()
        if not stats:
            return AllocatorTotals(0, 0, 0, 0)  # CUDA is not up, so nothing was allocated
        counts, sizes = "allocation.all.", "allocated_bytes.all."
        names = (counts + "allocated", counts + "freed", sizes + "allocated", sizes + "freed")
        values = [stats.get(name) for name in names]
        if not all(isinstance(value, int) for value in values):
            return None
        return AllocatorTotals(*(int(value or 0) for value in values))

    def peak_watch(self) -> probe_counters.PeakWatch | None:
        return probe_counters.PeakWatch(1, lambda: self.device_id, self.allocated_now) if probe_counters.exact_available()[0] else None

    def peak_so_far_bytes(self) -> int | None:
        return int(self._stats().get("allocated_bytes.all.peak", 0))  # 0: CUDA is not up, so nothing was allocated

    def _stats(self) -> dict[str, Any]:
        cuda, index = self._torch.cuda, self.device_id
        return dict(cuda.memory_stats(index)) if index >= 0 and cuda.is_initialized() else {}

    def _source(self) -> str:
        return "torch.cuda.memory_stats, cudaMemGetInfo"


class ROCmDeviceCollector(CudaDeviceCollector):
    """An AMD GPU: PyTorch's ROCm build has the same interface on HIP."""

    def name(self) -> str:
        return "rocm"

    def _source(self) -> str:
        return "torch.cuda.memory_stats, hipMemGetInfo"


class MPSDeviceCollector(DeviceMemoryCollector):
    """Apple's GPU through PyTorch. Its memory is the machine's; MPS does not report the use by other processes."""

    device_id = 0

    def __init__(self, device: Any = None) -> None:
        self._torch = require_torch("the memory of a GPU")
        self.basis, self.basis_reason = "framework", "counters of PyTorch's MPS allocator"

    def name(self) -> str:
        return "mps"

    def is_available(self) -> bool:
        return bool(self._torch.backends.mps.is_available())

    def _read(self, missing: dict[str, str]) -> DeviceMemorySample:
        mps = self._torch.mps
        missing.update(dict.fromkeys(("used_bytes", "free_bytes"), "MPS reports the memory of this process only"))
        missing.update(dict.fromkeys(("active_bytes", "inactive_bytes"), "not reported by PyTorch for MPS"))
        total = int(mps.recommended_max_memory()) if hasattr(mps, "recommended_max_memory") else None
        allocated, reserved = int(mps.current_allocated_memory()), int(mps.driver_allocated_memory())
        return DeviceMemorySample(allocated, reserved, None, None, total, None, None, 0)

    def _source(self) -> str:
        return "torch.mps"


class CPUDeviceCollector(DeviceMemoryCollector):
    """Host memory. Allocated is the bytes of tensors if the probe counts them, otherwise the process's resident memory.
    """

    def __init__(self, device: Any = None) -> None:
        self._host = HostMemory()
        self.refresh()

    def refresh(self) -> None:
        self._counted, why_not = probe_counters.exact_available()
        if self._counted:
            self.basis = "exact"
            self.basis_reason = "allocator events of CPU tensors since counting began, without older ones"
        else:
            self.basis, self.basis_reason = "host", f"resident memory of the process: {why_not}"

    def name(self) -> str:
        return "cpu"

    def is_available(self) -> bool:
        return True

    def _read(self, missing: dict[str, str]) -> DeviceMemorySample:
        counts = probe_counters.read_counters(0, 0) if self._counted else None
        allocated = counts.live_bytes if counts else 0 if self._counted else resident_bytes()[0]
        if not allocated and not self._counted:
            raise RuntimeError("the memory of this process cannot be read: no /proc")
        missing["reserved_bytes"] = "PyTorch keeps no cache of host memory"
        missing.update(dict.fromkeys(("active_bytes", "inactive_bytes"), "PyTorch keeps no cache of host memory"))
        host = self._host.read()
        if host is None:
            missing.update(dict.fromkeys(("used_bytes", "free_bytes", "total_bytes"), "there is no /proc/meminfo"))
            return DeviceMemorySample(allocated, None, None, None, None, None, None, -1)
        return DeviceMemorySample(allocated, None, host.used_bytes, host.free_bytes, host.total_bytes, None, None, -1)

    def totals(self) -> AllocatorTotals | None:
        counts = probe_counters.read_counters(0, 0) if self._counted else None
        if counts is None:
            return AllocatorTotals(0, 0, 0, 0) if self._counted else None
        return AllocatorTotals(counts.alloc_count, counts.free_count, counts.alloc_bytes, counts.free_bytes)

    def peak_watch(self) -> probe_counters.PeakWatch | None:
        return probe_counters.PeakWatch(0, lambda: 0) if self._counted else None

    def peak_so_far_bytes(self) -> int | None:
        return None if self._counted else resident_bytes()[1] or None

    def _source(self) -> str:
        return "gpumemprof probe, /proc" if self._counted else "/proc"


_COLLECTORS: dict[str, Callable[[Any], DeviceMemoryCollector]] = {
    "cuda": CudaDeviceCollector,
    "rocm": ROCmDeviceCollector,
    "mps": MPSDeviceCollector,
    "cpu": CPUDeviceCollector,
}


def detect_torch_runtime_backend() -> str:
    """"cuda", "rocm", "mps" or "cpu": what PyTorch can use here; "cpu" without PyTorch."""
    try:
        torch = loaded_torch() or require_torch()
    except ImportError:
        return "cpu"
    if torch.cuda.is_available():
        return "rocm" if getattr(torch.version, "hip", None) else "cuda"
    mps = getattr(torch.backends, "mps", None)
    return "mps" if mps is not None and mps.is_available() else "cpu"


def build_device_memory_collector(device: Any = None) -> DeviceMemoryCollector:
    """The collector of a device: None (the GPU if there is one, otherwise the CPU), "cpu", "cuda:1", 1, torch.device.

    Raises RuntimeError if that device is not present, ValueError for an unknown device.
    """
    kind = kind_of(device)
    if kind is None:
        return _COLLECTORS[detect_torch_runtime_backend()](device)
    if kind == "cpu":
        return CPUDeviceCollector()
    backend = detect_torch_runtime_backend()
    if kind == "cuda" and backend == "rocm":
        kind = "rocm"
    if kind not in _COLLECTORS:
        raise ValueError(f"no collector for device {device!r}: use cuda, mps or cpu")
    if kind != backend:
        raise RuntimeError(f'{kind.upper()} is not available here: use device="cpu" to track host memory')
    return _COLLECTORS[kind](device)
