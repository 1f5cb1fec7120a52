"""What `torch.cuda` says in a traced script: that there is one GPU, as a training script needs to hear."""

from __future__ import annotations

import os
import types
from typing import Any

import torch

# For scripts that ask how much there is. What is estimated does not depend on it.
TOTAL_BYTES = 80 << 30
_CAPABILITY = (8, 0)
MULTIPROCESSORS = int(os.environ.get("GPUMEMPROF_ESTIMATE_MULTIPROCESSORS") or 108)  # else an A100's
THREADS_OF_ONE = 2048


class _Nothing:
    """A stream or an event: everything is done at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_stream = 0
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def elapsed_time(self, _: Any) -> float:
        return 1.0

    def query(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def install(log: Any) -> None:
    cuda: Any = torch.cuda
    properties = types.SimpleNamespace(
        name="an estimated GPU",
        major=_CAPABILITY[0],
        minor=_CAPABILITY[1],
        total_memory=TOTAL_BYTES,
        multi_processor_count=MULTIPROCESSORS,
        warp_size=32,
        gcnArchName="",
    )
    constants: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "is_initialized": True,
        "is_bf16_supported": True,
        "get_device_name": properties.name,
        "get_device_capability": _CAPABILITY,
        "get_device_properties": properties,
        "get_arch_list": ["sm_80"],
        "mem_get_info": (TOTAL_BYTES, TOTAL_BYTES),
        "is_current_stream_capturing": False,
        "utilization": 0,
        "get_rng_state": torch.empty(16, dtype=torch.uint8),
        "get_rng_state_all": [],
        "memory_stats": {},
        "memory_summary": "",
        "can_device_access_peer": False,
    }
    for name, value in constants.items():
        setattr(cuda, name, lambda *_, value=value, **__: value)
    for name in (
        "init",
        "_lazy_init",
        "synchronize",
        "set_device",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "set_rng_state",
        "set_rng_state_all",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
        "reset_accumulated_memory_stats",
        "reset_max_memory_reserved",
        "reset_max_memory_cached",
        "set_per_process_memory_fraction",
        "ipc_collect",
        "set_stream",
    ):
        setattr(cuda, name, lambda *_, **__: None)
    for name in ("memory_allocated", "memory_reserved", "memory_cached"):
        setattr(cuda, name, lambda *_, **__: log.live_bytes)
    for name in ("max_memory_allocated", "max_memory_reserved", "max_memory_cached"):
        setattr(cuda, name, lambda *_, **__: log.peak_bytes)
    cuda.empty_cache = lambda: log.empty_cache()
    for name in ("Stream", "Event", "ExternalStream", "stream", "device", "device_of"):
        setattr(cuda, name, _Nothing)
    cuda.current_stream = cuda.default_stream = lambda *_, **__: _Nothing()
    if accelerator := getattr(torch, "accelerator", None):  # from PyTorch 2.6 on
        _answer_for_the_accelerator(accelerator)
    torch.backends.cuda.is_built = lambda: True
    torch.backends.cudnn.is_available = lambda: True
    torch.backends.cudnn.version = lambda: 90100


def _answer_for_the_accelerator(accelerator: Any) -> None:
    """A CUDA build asks the driver through it, even in an optimizer's step, and there may be none."""
    accelerator.current_stream = lambda *_, **__: _Nothing()
    for name in ("current_device_index", "current_device_idx"):
        setattr(accelerator, name, lambda: 0)
    for name in ("set_device_index", "set_device_idx", "set_stream", "synchronize"):
        setattr(accelerator, name, lambda *_, **__: None)
