"""Size formatting, and information about this machine and its GPUs."""

from __future__ import annotations

import os
import platform
import sys
from types import TracebackType
from typing import Any

from .._core.needed import needed
from .._core.printed import convert_bytes as convert_bytes
from .._core.printed import format_bytes as format_bytes
from .._core.printed import format_size
from .accelerators import accelerators, device_memory, smi_info, uuid_of
from .devices import Device, resolve_device

def _torch() -> Any | None:
    try:
        import torch
    except ImportError:
        return None
    return torch


def get_gpu_info(device: Any = None) -> dict[str, Any]:
    """PyTorch's and the driver's information about a GPU: bytes, counts, names. `nvidia_smi_info` is the driver's, in
    MiB, over all processes. {"error": reason} if PyTorch can use no GPU; `devices` is present nevertheless if a driver
    shows some."""
    torch = _torch()
    if torch is None:
        return _without(needed("PyTorch", "torch"))
    if not torch.cuda.is_available():
        return _without("CUDA is not available")
    where = resolve_device(device)
    if where.is_cpu:
        return {"error": f"{where} is not a GPU"}
    index = where.index if where.index >= 0 else int(torch.cuda.current_device())
    properties = torch.cuda.get_device_properties(index)
    stats = torch.cuda.memory_stats(index)
    return {
        "device_id": index,
        "device_name": properties.name,
        "device_capability": (properties.major, properties.minor),
        "total_memory": properties.total_memory,
        "multiprocessor_count": properties.multi_processor_count,
        "cuda_version": torch.version.cuda,
        "pytorch_version": torch.__version__,
        "allocated_memory": torch.cuda.memory_allocated(index),
        "reserved_memory": torch.cuda.memory_reserved(index),
        "max_memory_allocated": torch.cuda.max_memory_allocated(index),
        "max_memory_reserved": torch.cuda.max_memory_reserved(index),
        "memory_stats": {
            "active_bytes": stats.get("active_bytes.all.current", 0),
            "inactive_bytes": stats.get("inactive_split_bytes.all.current", 0),
            "reserved_bytes": stats.get("reserved_bytes.all.current", 0),
            "num_alloc_retries": stats.get("num_alloc_retries", 0),
            "num_ooms": stats.get("num_ooms", 0),
        },
        "nvidia_smi_info": smi_info(device_memory(index, uuid_of(torch, index))),
    }


def _without(error: str) -> dict[str, Any]:
    """{"error"}, and the devices that drivers show."""
    try:
        devices = accelerators()["devices"]
    except ImportError:
        devices = []
    return {"error": error, **({"devices": devices} if devices else {})}


def _meminfo() -> dict[str, int]:
    """/proc/meminfo in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = (line.split() for line in file)
            return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}
    except (OSError, ValueError):
        return {}


def get_system_info() -> dict[str, Any]:
    """This machine, Python and PyTorch; sizes in bytes. Unknown values are None."""
    torch, memory = _torch(), _meminfo()
    has_cuda = torch is not None and torch.cuda.is_available()
    info: dict[str, Any] = {
        "platform": platform.platform(),
        "python_version": platform.python_version(),
        "cpu_count": os.cpu_count(),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "pytorch_version": None if torch is None else torch.__version__,
        "cuda_available": has_cuda,
        "cuda_version": None if torch is None else torch.version.cuda,
        "cuda_device_count": torch.cuda.device_count() if torch is not None and has_cuda else 0,
        "detected_backend": "cpu",
    }
    if has_cuda and torch is not None:
        info["detected_backend"] = "rocm" if torch.version.hip else "cuda"
        info["current_device"] = torch.cuda.current_device()
        info["device_name"] = torch.cuda.get_device_name()
    return info


def check_memory_fragmentation(device: Any = None) -> dict[str, Any]:
    """Ratios of a GPU's pool: `fragmentation_ratio` is the unusable parts of split blocks divided by the reserved
    bytes.

    {"error": reason} without a GPU. Ratios are None if nothing is reserved.
    """
    info = get_gpu_info(device)
    if "error" in info:
        return {"error": info["error"]}
    reserved, allocated, total = info["reserved_memory"], info["allocated_memory"], info["total_memory"]
    inactive = info["memory_stats"]["inactive_bytes"]
    return {
        "allocated_memory": allocated,
        "reserved_memory": reserved,
        "inactive_split_bytes": inactive,
        "fragmentation_ratio": inactive / reserved if reserved else None,
        "utilization_ratio": allocated / reserved if reserved else None,
        "reservation_ratio": reserved / total if total else None,
        "waste_ratio": (reserved - allocated) / reserved if reserved else None,
    }


def suggest_memory_optimization(fragmentation_info: dict[str, Any]) -> list[str]:
    """Suggestions from the figures of check_memory_fragmentation; empty if there are none."""
    suggestions = []
    if (fragmentation_info.get("fragmentation_ratio") or 0) > 0.3:
        suggestions.append(
            "More than 30 % of the pool is in unusable parts of split blocks: try "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or allocate the largest tensors first."
        )
    if (fragmentation_info.get("reservation_ratio") or 0) > 0.9:
        suggestions.append("The pool has more than 90 % of the device: use a smaller batch or checkpointing.")
    if (fragmentation_info.get("waste_ratio") or 0) > 0.5:
        suggestions.append(
            "More than half of the pool is cached and unused: torch.cuda.empty_cache() releases it to other programs."
        )
    return suggestions


def memory_summary(device: Any = None) -> str:
    """A few lines of text: the GPU's allocator, or this process's host memory without a GPU."""
    info = get_gpu_info(device)
    if "error" in info:
        from .counters import source_for, status_bytes

        source = source_for("cpu")
        now, highest = (format_size(status_bytes(name) or 0) for name in ("VmRSS", "VmHWM"))
        lines = [
            f"Device:     cpu ({info['error']})",
            f"Allocated:  {format_size(source.read().allocated_bytes)} ({source.basis_reason})",
            f"Resident:   {now}, at most {highest}",
        ]
        return "\n".join(lines)
    highest = format_size(info["max_memory_allocated"])
    return "\n".join(
        [
            f"Device:     cuda:{info['device_id']} ({info['device_name']})",
            f"Total:      {format_size(info['total_memory'])}",
            f"Allocated:  {format_size(info['allocated_memory'])}, at most {highest}",
            f"Reserved:   {format_size(info['reserved_memory'])}, at most {format_size(info['max_memory_reserved'])}",
        ]
    )


class MemoryContext:
    """`with MemoryContext("load"):` prints the memory that the block added, and its peak, to stderr."""

    def __init__(self, name: str = "operation", device: Any = None) -> None:
        self.name = name
        self.device: Device = resolve_device(device)
        self._span: Any = None

    def __enter__(self) -> MemoryContext:
        from .counters import source_for

        self._source = source_for(self.device)
        self._span = self._source.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from .counters import figures_of

        if self._span is None:  # left once already
            return
        figures = self.figures = figures_of(self._source, self._span.end())
        self._span = None
        change = figures.after.allocated_bytes - figures.before.allocated_bytes
        sign = "+" if change >= 0 else ""
        bound = "" if figures.peak_is_exact else "at least "
        print(
            f"{self.name}: {sign}{format_size(change)}, peak {bound}{format_size(figures.peak_bytes)} "
            f"({self._source.basis})",
            file=sys.stderr,
        )
