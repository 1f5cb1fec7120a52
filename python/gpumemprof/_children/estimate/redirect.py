"""A GPU for a script that has none: what it puts on "cuda" goes to tensors without memory, or to the host's own."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import autocast

CUDA = torch.device("cuda", 0)
_GET_DEVICE = torch.Tensor.device.__get__
_GET_IS_CUDA = torch.Tensor.is_cuda.__get__


def is_cuda(device: Any) -> bool:
    if isinstance(device, torch.device):
        return bool(device.type == "cuda")
    return isinstance(device, str) and device.split(":")[0] == "cuda"


class Redirect(TorchFunctionMode):  # type: ignore[misc]
    """`target` is where tensors of the script's GPU really are. `adopt` is open while one is made, `came` is told of
    those that come from the host."""

    def __init__(self, target: str, is_ours: Any, adopt: Any, came: Any) -> None:
        super().__init__()
        self.target, self.is_ours, self.adopt, self.came = torch.device(target), is_ours, adopt, came
        self.values_read = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func == _GET_DEVICE:
            return CUDA if self.is_ours(args[0]) else func(*args)
        if func == _GET_IS_CUDA:
            return self.is_ours(args[0])
        if func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.Tensor.__format__ and self.is_ours(args[0]) and args[0].dim() == 0:
            return format(self._values(args[0]).item(), args[1])
        if func is torch.Tensor.cuda:
            return self._to(args[0], None, bool(kwargs.get("non_blocking", False)))
        if func is torch.Tensor.numpy or func is torch.Tensor.tolist or func is torch.Tensor.__array__:
            if self.is_ours(args[0]) and self.target.type == "meta":
                args = (self._values(args[0]), *args[1:])
        wants_cuda = is_cuda(kwargs.get("device")) or (args and any(is_cuda(word) for word in args[1:4]))
        if wants_cuda and func is torch.Tensor.to:
            return self._to_words(args, kwargs)
        if wants_cuda:
            with self.adopt():
                kwargs = {**kwargs, "device": self.target} if "device" in kwargs else kwargs
                args = tuple(self.target if is_cuda(word) else word for word in args)
                return func(*args, **kwargs)
        args, kwargs = autocast.prepared(func, args, kwargs)
        return func(*args, **kwargs)

    def _to_words(self, args: Any, kwargs: Any) -> Any:
        words = [self.target if is_cuda(word) else word for word in args[1:]]
        kwargs = {key: self.target if is_cuda(word) else word for key, word in kwargs.items()}
        dtype = next((word for word in (*words, *kwargs.values()) if isinstance(word, torch.dtype)), None)
        return self._to(args[0], dtype, False)

    def _to(self, tensor: torch.Tensor, dtype: torch.dtype | None, non_blocking: bool) -> torch.Tensor:
        if self.is_ours(tensor):
            return tensor if dtype is None else tensor.to(dtype)
        with self.adopt():
            if self.target.type == "cpu":  # the script's own copy stays where it is
                new = tensor.to(dtype or tensor.dtype, copy=True)
            else:
                new = tensor.to(self.target, dtype or tensor.dtype)
            self.came(new)
            return new

    def _values(self, tensor: torch.Tensor) -> torch.Tensor:
        self.values_read = True
        return torch.ones(tensor.shape, dtype=tensor.dtype)
