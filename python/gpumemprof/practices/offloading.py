"""Layers that are on the device only while they run."""

from __future__ import annotations

import mmap
import os
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("offloading layers")
import_module("torch.utils.checkpoint")  # not loaded by torch itself in every release


class LayerOffloader:
    """Keeps the weights of layers in pinned memory or in files, and copies each layer's to the device while it runs. On
    a GPU the next layer is copied meanwhile, on its own stream.

    A layer runs on the device with copies of its weights that are freed after it has run. With gradients on, it is
    checkpointed: its weights are copied again for its backward pass, and its gradients are moved to the parameters,
    where the optimizer and the state_dict see them.

    `folder` keeps the weights in mapped files; this also works on the CPU, where without a folder nothing is moved.
    `layers` must be in the order in which they run. Buffers stay on the device.
    """

    def __init__(
        self,
        model: Any,
        device: Any = "cuda",
        layers: Iterable[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """`layers`: names of modules; by default the model's children, of which those without parameters just run."""
        self.model, self.device, self.cpu_device = model, torch.device(device), "cpu"
        names = [name for name, _ in model.named_children()] if layers is None else list(layers)
        self.layers = {name: model.get_submodule(name) for name in names}
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        self._ahead: dict[int, dict[str, Any]] = {}  # number of a layer -> copies that are there before they are asked for
        moving = [(name, layer) for name, layer in self.layers.items() if next(layer.parameters(), None) is not None]
        self._order = [layer for _, layer in moving]
        self._moves = self.device.type != "cpu" or folder is not None
        if not self._moves:
            return
        for number, (name, layer) in enumerate(moving):
            _send_home(layer, Path(folder) / name if folder is not None else None, self.device)
            self._patch(number, layer)

    def forward_with_offloading(self, x: Any) -> Any:
        """Runs the layers one after the other, like a Sequential; call models that connect them differently directly.
        """
        for layer in self.layers.values():
            x = layer(x)
        return x

    @contextmanager
    def offload_layer(self, layer_name: str) -> Iterator[Any]:
        """Inside the block a layer is on the CPU, so that others can use its memory. It cannot process the GPU's data
        there."""
        layer = self.model.get_submodule(layer_name)
        tensors = [*layer.parameters(), *layer.buffers()]
        before = tensors[0].device if tensors else torch.device("cpu")
        layer.to(self.cpu_device)
        try:
            yield layer
        finally:
            layer.to(before)

    def _patch(self, number: int, layer: Any) -> None:
        original = layer.forward
        is_inside = False  # functional_call comes back to us

        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal is_inside
            weights = self._weights(number)
            is_inside = True
            try:
                return torch.func.functional_call(layer, weights, args, kwargs)
            finally:
                is_inside = False

        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_inside:
                return original(*args, **kwargs)
            if torch.is_grad_enabled():
                return torch.utils.checkpoint.checkpoint(run, *args, use_reentrant=False, **kwargs)
            return run(*args, **kwargs)

        layer.forward = types.MethodType(forward, layer)

    def _weights(self, number: int) -> dict[str, Any]:
        """The layer's parameters on the device; each knows the way home for its gradient."""
        copies = self._ahead.pop(number, None) or self._copies(number)
        if self._stream is not None:
            now = torch.cuda.current_stream(self.device)
            now.wait_stream(self._stream)
            for copied in copies.values():
                copied.record_stream(now)
            coming = number + (-1 if _is_in_backward() else 1)
            self._ahead.clear()
            if 0 <= coming < len(self._order):
                self._ahead[coming] = self._copies(coming)
        home = dict(self._order[number].named_parameters())
        return {name: _Fetched.apply(home[name], copied) for name, copied in copies.items()}

    def _copies(self, number: int) -> dict[str, Any]:
        with torch.no_grad(), torch.cuda.stream(self._stream) if self._stream is not None else nullcontext():
            return {
                name: parameter.to(self.device, non_blocking=True, copy=True)
                for name, parameter in self._order[number].named_parameters()
            }


class _Fetched(torch.autograd.Function):  # type: ignore[misc]
    """The copy of a parameter; its gradient goes to where the parameter is."""

    @staticmethod
    def forward(ctx: Any, home: Any, copied: Any) -> Any:
        ctx.home = home.device
        return copied.view_as(copied)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient.to(ctx.home), None


def _send_home(layer: Any, path: Path | None, device: Any) -> None:
    for buffer_owner in layer.modules():
        for name, buffer in buffer_owner.named_buffers(recurse=False):
            buffer_owner._buffers[name] = buffer.to(device)
    for number, parameter in enumerate(layer.parameters()):
        if path is not None:
            home = _mapped(Path(f"{path}.{number}.weights"), parameter.nbytes, parameter.dtype).view(parameter.shape)
        else:
            home = torch.empty_like(parameter, device="cpu", pin_memory=torch.cuda.is_available())
        with torch.no_grad():
            home.copy_(parameter)
        parameter.data = home


def _mapped(path: Path, size_bytes: int, dtype: Any) -> Any:
    """A new file as a tensor: pages that the system can drop, and no memory of the allocator's."""
    if size_bytes == 0:
        return torch.empty(0, dtype=dtype)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w+b") as file:
        file.truncate(size_bytes)
        return torch.frombuffer(mmap.mmap(file.fileno(), size_bytes), dtype=dtype)  # which keeps the mapping


def _is_in_backward() -> bool:
    ask = getattr(torch._C, "_current_graph_task_id", None)
    return ask is not None and ask() != -1


def memory_efficient_forward(model: Any, x: Any, layers: Iterable[str] | None = None) -> Any:
    """Runs the layers one after the other, each checkpointed: only the tensors between layers are kept.

    To keep weights elsewhere as well, use LayerOffloader.
    """
    names = [name for name, _ in model.named_children()] if layers is None else list(layers)
    for name in names:
        layer = model.get_submodule(name)
        x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) if torch.is_grad_enabled() else layer(x)
    return x
