"""Names for what a model's storages are, and the calls of its modules."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from .events import EventLog


class ModuleCalls:
    """Tells the log which module runs. Hooks of all modules, in the child process that traces."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._names: dict[int, str] = {}
        self.roots: list[torch.nn.Module] = []
        self._depth = 0
        self.recurrent = False  # a layer that cuDNN runs as a whole was called
        self.on_root: Any = None  # called when a model's outermost call begins
        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def know(self, root: torch.nn.Module) -> None:
        self.roots.append(root)
        for name, module in root.named_modules():
            self._names.setdefault(id(module), name or type(root).__name__)

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        if self._depth == 0:
            if not any(root is module for root in self.roots):
                self.know(module)
            if self.on_root is not None:
                self.on_root()
        self._depth += 1
        self.recurrent |= isinstance(module, torch.nn.RNNBase)
        self._log.enter_module(self._names.get(id(module), type(module).__name__))

    def _leave(self, *_: Any) -> None:
        self._depth = max(0, self._depth - 1)
        self._log.leave_module()

    def categorize(self, optimizers: list[Any]) -> None:
        """What lives now and has an owner: parameters, their gradients, buffers, optimizers' state."""
        for root in self.roots:
            for name, buffer in root.named_buffers():
                self._log.categorize(buffer, "b", name)
            for name, parameter in root.named_parameters():
                self._log.categorize(parameter, "p", name)
                if parameter.grad is not None:
                    self._log.categorize(parameter.grad, "g", name)
        names = (
            {id(parameter): name for root in self.roots for name, parameter in root.named_parameters()}
            if optimizers
            else {}
        )
        for optimizer in optimizers:
            for parameter, state in optimizer.state.items():
                for value in state.values() if isinstance(state, dict) else ():
                    if isinstance(value, torch.Tensor):
                        self._log.categorize(value, "o", names.get(id(parameter), ""))


def move(model: torch.nn.Module, log: EventLog, device: str, dtype: torch.dtype | None) -> None:
    """`model.to(device)`, in its order: children first, then a module's parameters, then its buffers. Tensors that are
    tied stay tied, which they would not where their class changes on the way."""
    moved: dict[int, tuple[Any, Any]] = {}
    seen: set[int] = set()

    def move_one(tensor: torch.Tensor) -> Any:
        if id(tensor) not in moved:
            target = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
            new: Any = torch.empty(tensor.shape, dtype=target, device=device)
            if isinstance(tensor, torch.nn.Parameter):
                new = torch.nn.Parameter(new, requires_grad=tensor.requires_grad)
            moved[id(tensor)] = (new, tensor)  # the old one is kept: its id must not come again
        return moved[id(tensor)][0]

    def walk(module: torch.nn.Module) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        for child in module.children():
            walk(child)
        for table, category in ((module._parameters, "p"), (module._buffers, "b")):
            for name, tensor in table.items():
                if tensor is not None:
                    table[name] = move_one(tensor)

    walk(model)
