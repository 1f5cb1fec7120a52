"""The size of a device, to compare peaks with."""

from __future__ import annotations

from .._core.torch import loaded_torch
from .host_memory import HostMemory


def limit_of(device_id: int | None) -> float | None:
    """Bytes of a CUDA device, or of this machine (its control group) for -1; None if that is not known.

    Asks the machine it runs on, so only what was measured here may be compared with it. Starts no CUDA context."""
    if device_id is None:
        return None
    if device_id < 0:
        host = HostMemory().read()
        return float(host.total_bytes) if host else None
    torch = loaded_torch()
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return (
        float(torch.cuda.get_device_properties(device_id).total_memory)
        if device_id < torch.cuda.device_count()
        else None
    )


def device_words(device_id: int | None) -> str:
    """What a title calls it."""
    if device_id is None:
        return ""
    return "the CPU" if device_id < 0 else f"GPU {device_id}"


def device_id_of(device: str | None) -> int | None:
    """-1 of "cpu", 1 of "cuda:1", 0 of "cuda"; None of anything else."""
    kind, _, index = (device or "").partition(":")
    if kind == "cpu":
        return -1
    return int(index or 0) if kind == "cuda" and (index or "0").isdigit() else None
