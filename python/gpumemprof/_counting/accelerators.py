"""Drivers' figures of GPUs, without initializing any framework: NVML, and the kernel's files."""

from __future__ import annotations

import json
import os
from typing import Any

from .._core.columns import side_by_side
from .._core.native import native


def accelerators() -> dict[str, Any]:
    """{"devices": […], "notes": […]}, as `gpumemprof info --format json` has them. Bytes; None's reason is in "unknown"."""
    return dict(json.loads(native().accelerators()))


def device_memory(index: int, uuid: str | None = None) -> dict[str, Any]:
    """The GPU that this process numbers `index`, as the driver sees it; {"accelerator": None, "why_not": …} where that
    cannot be told. `uuid`, where CUDA has told it, leaves no doubt."""
    cuda = os.environ.get("CUDA_VISIBLE_DEVICES")
    rocm = os.environ.get("HIP_VISIBLE_DEVICES", os.environ.get("ROCR_VISIBLE_DEVICES"))
    try:
        ordered = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
        return dict(json.loads(native().device_memory(index, uuid, cuda, rocm, ordered)))
    except ImportError as error:
        return {"accelerator": None, "why_not": str(error)}


def uuid_of(torch: Any, index: int) -> str | None:
    """Of an initialised CUDA's device; None if this PyTorch does not tell."""
    uuid = str(getattr(torch.cuda.get_device_properties(index), "uuid", "") or "")
    return None if getattr(torch.version, "hip", None) else uuid or None


def smi_info(device: dict[str, Any]) -> dict[str, Any]:
    """What nvidia-smi shows of a device, by its documented names: MiB, percent, °C, W. None's reason is in "unknown"."""
    if device.get("accelerator") is None:
        return {"unknown": {"device": str(device["why_not"])}}
    why, mib = device["unknown"], 1 << 20
    used, kept = device["used_bytes"], device["reserved_bytes"]
    values = {
        "memory_total_mb": _per(device["total_bytes"], mib),
        # As nvidia-smi counts: without what the driver keeps for itself, where it tells that.
        "memory_used_mb": _per(used if used is None or kept is None else used - kept, mib),
        "memory_free_mb": _per(device["free_bytes"], mib),
        "gpu_utilization_percent": device["utilization_percent"],
        "temperature_c": device["temperature_celsius"],
        "power_draw_w": None if device["power_milliwatts"] is None else device["power_milliwatts"] / 1000,
    }
    sources = ["total_bytes", "used_bytes", "free_bytes", "utilization_percent", "temperature_celsius"]
    sources.append("power_milliwatts")
    unknown = {name: why[of] for name, of in side_by_side(values, sources) if values[name] is None and of in why}
    return {**values, **({"unknown": unknown} if unknown else {})}


def _per(size: int | None, unit: int) -> int | None:
    return None if size is None else size // unit
