"""Devices as people write them, as one value."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import Any

from .._core.torch import torch_to_look

# c10::DeviceType, which is what the probe counts by. ROCm's devices call themselves CUDA.
_TYPE_CODES = {"cpu": 0, "cuda": 1}


@dataclass(frozen=True, eq=False)
class Device:
    """A device of this process: `type` as PyTorch names it, `index` -1 for the CPU."""

    type: str
    index: int

    @property
    def code(self) -> int:
        """Its c10::DeviceType."""
        return _TYPE_CODES[self.type]

    @property
    def is_cpu(self) -> bool:
        return self.type == "cpu"

    def __str__(self) -> str:
        return self.type if self.index < 0 else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash(self.type)  # not the index, which CurrentGpu learns later


CPU = Device("cpu", -1)


class JaxHost(Device):
    """The host's memory as JAX allocates it, which the probe counts by itself. Equals CPU."""

    def __init__(self) -> None:
        super().__init__("cpu", -1)

    @property
    def code(self) -> int:
        """jax:cpu in a recording."""
        return 72


class CurrentGpu(Device):
    """The GPU that the program uses, where none was named. Its `index` is -1 until the program has brought CUDA up.

    Asking PyTorch for the current device would bring CUDA up: hundreds of MB, no fork after it, and too early for a
    rank that has not chosen its device. So it is asked at the first look after that, and kept.
    """

    def __init__(self) -> None:
        object.__setattr__(self, "type", "cuda")
        object.__setattr__(self, "_found", -1)

    @property
    def index(self) -> int:
        found: int = self.__dict__["_found"]
        if found < 0:
            found = _used_gpu()
            object.__setattr__(self, "_found", found)
        return found

    def __repr__(self) -> str:
        return f"CurrentGpu({self})"


def _used_gpu() -> int:
    """The index of the current device, -1 where that is not known yet. Brings nothing up."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return -1
    count = int(torch.cuda.device_count())
    if count == 1 or threading.current_thread() is threading.main_thread():
        return int(torch.cuda.current_device())
    # Every thread has a current device of its own, and that of a thread of ours says nothing of the program's.
    reserved = [int(torch.cuda.memory_reserved(index)) for index in range(count)]
    return reserved.index(max(reserved)) if any(reserved) else -1


def kind_of(device: Any) -> str | None:
    """"cuda", "cpu", …; None for None. An integer is a CUDA device, as in PyTorch. ValueError for no device."""
    if device is None:
        return None
    if isinstance(device, int) and not isinstance(device, bool) and device >= 0:
        return "cuda"
    kind = device.split(":")[0].strip().lower() if isinstance(device, str) else getattr(device, "type", None)
    if not isinstance(kind, str) or not kind.isalpha():
        raise ValueError(f'{device!r} is not a device: use None, "cpu", "cuda", "cuda:0", 0 or a torch.device')
    return "cuda" if kind in ("cuda", "gpu", "rocm", "hip") else kind


def index_of(device: Any) -> int | None:
    """The number in "cuda:1", 1 or torch.device("cuda:1"); None if it has none."""
    if isinstance(device, int):
        return int(device)
    if isinstance(device, str):
        _, colon, number = device.partition(":")
        if colon and not (number.isascii() and number.isdigit()):
            raise ValueError(f"{device!r} is not a device: a number must follow the colon")
        return int(number) if colon else None
    index = getattr(device, "index", None)
    return index if isinstance(index, int) else None


def resolve_device(device: Any = None) -> Device:
    """The device that None (the current GPU, else the CPU), an index, a string or a torch.device names.

    Where no index is named and CUDA is not up yet, that is a CurrentGpu: CUDA is never brought up here.

    RuntimeError where a GPU is named and there is none that PyTorch can use, ValueError for one that does not exist or
    of another kind, TypeError for anything else. PyTorch is imported only where a GPU is asked for or may be there.
    """
    if isinstance(device, Device):
        return device
    if device is None:
        return _default_device()
    if isinstance(device, bool) or not (isinstance(device, (int, str)) or type(device).__name__ == "device"):
        raise TypeError(f"device must be None, an index, a name or a torch.device, not {type(device).__name__}")
    if isinstance(device, int):
        return _cuda_device(device)
    kind, index = kind_of(device), index_of(device)
    if kind == "cpu" and index in (None, 0):
        return CPU
    if kind != "cuda":
        raise ValueError(f"Only CUDA and CPU devices can be profiled, not {str(device)!r}: use 'cuda:0' or 'cpu'")
    return _cuda_device(index)


def _default_device() -> Device:
    # Without PyTorch there is no GPU memory of ours to measure, but host memory there is.
    try:
        torch = torch_to_look()
    except ImportError:
        return CPU
    if not torch.cuda.is_available():
        return CPU
    return _current_gpu()


def _current_gpu() -> Device:
    gpu = CurrentGpu()
    return gpu if gpu.index < 0 else Device("cuda", gpu.index)


def _cuda_device(index: int | None) -> Device:
    from .._core.torch import require_torch

    torch = require_torch("profiling GPU memory")
    if not torch.cuda.is_available():
        raise RuntimeError(
            'CUDA is not available, cannot profile GPU memory: use device="cpu" to profile the memory of CPU tensors'
        )
    if index is None:
        return _current_gpu()
    count = int(torch.cuda.device_count())
    if not 0 <= index < count:
        raise ValueError(f"Device cuda:{index} is not available: there are {count} (0 to {count - 1})")
    return Device("cuda", index)


def torch_device(device: Device) -> Any:
    """A torch.device where the program uses PyTorch, else its name."""
    torch = sys.modules.get("torch")
    return str(device) if torch is None else torch.device(str(device))
