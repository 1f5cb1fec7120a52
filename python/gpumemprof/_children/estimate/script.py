"""Traces the script that this process runs: two steps of its optimizer on a GPU that is not there, then the process
ends.

Begun by armed.py when the script imports torch. Everything here may change what PyTorch does: the process lives for the
trace alone.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import contextmanager
from typing import Any, Iterator

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves

from ..error import failed
from . import attention, checkpoints, cuda_answers, dropout, parallel
from .constants import Constants
from .events import SCALED_BATCHES, EventLog, storages_of
from .modules import ModuleCalls
from .redirect import Redirect, is_cuda

_aten = torch.ops.aten
_STEPS = 2
_READS = frozenset((_aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default))
_VALUES_ARE_UNKNOWN = (
    "values that the script reads from the GPU (loss.item()) are 1 here: sizes that depend on them may differ"
)
_NOTHING_ON_A_GPU = (
    "the script put nothing on a GPU: nothing to estimate. Let it use torch.device('cuda' if torch.cuda.is_available() "
    "else 'cpu'), which is 'cuda' while it is traced"
)


class ScriptLog(EventLog):
    """The events of the script's GPU. On the host it is known by descent: what is made of a tensor that was moved
    there."""

    def __init__(self, target: str) -> None:
        super().__init__(self._counts)
        self.target = target
        self.adopting = False
        self.values_read = False
        self._operands: bool = False
        self._constants = Constants()

    def is_ours(self, tensor: torch.Tensor) -> bool:
        if self.target == "meta":
            return tensor.is_meta if type(tensor) is torch.Tensor else _is_meta(tensor)
        if tensor.layout not in (torch.strided, torch.sparse_coo):
            return False
        return any(storage._cdata in self._live for storage in storages_of(tensor))

    def _counts(self, tensor: torch.Tensor) -> bool:
        return _is_meta(tensor) if self.target == "meta" else self.adopting or self._operands

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self.target != "meta":
            tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            self._operands = any(self.is_ours(tensor) for tensor in tensors)
            return func(*args, **kwargs)
        if func in _READS and args and isinstance(args[0], torch.Tensor) and _is_meta(args[0]):
            number = None if func is _aten.equal.default else self._constants.of(args[0])
            if number is not None:
                return number if func is _aten._local_scalar_dense.default else bool(number)
            self.values_read = True
            return _value(args[0]) if func is _aten._local_scalar_dense.default else False
        if func is _aten._to_copy.default and _is_meta(args[0]) and _leaves_the_device(kwargs):
            self.values_read = True
            return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        if func is _aten.copy_.default and _is_meta(args[1]) and not _is_meta(args[0]):
            self.values_read = True
            return args[0].fill_(1)
        result = func(*args, **kwargs)
        self._constants.note(func, args, kwargs, result)
        return result

    def _storage_dropped(self, key: int, reference: Any) -> None:
        self._constants.forget(key)
        super()._storage_dropped(key, reference)


def _is_meta(tensor: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return bool(tensor.is_meta)


def _leaves_the_device(kwargs: Any) -> bool:
    device = kwargs.get("device")
    return device is not None and torch.device(device).type == "cpu"


def _value(tensor: torch.Tensor) -> Any:
    if tensor.dtype == torch.bool:
        return False
    return 1.0 if tensor.is_floating_point() else 1


class ScriptTrace:
    """The one trace of this process."""

    def __init__(self, folder: str, target: str, steps: int = _STEPS) -> None:
        self.folder, self.target, self.steps = folder, target, steps
        self.log = ScriptLog(target)
        self.batch = int(os.environ.get("GPUMEMPROF_ESTIMATE_BATCH") or 0)
        self.log.has_partial_sums = self.batch not in SCALED_BATCHES
        self.calls = ModuleCalls(self.log)
        self.calls.on_root = self._on_root
        self._optimizers: dict[int, Any] = {}
        self._steps_of: dict[int, int] = {}
        self._made = 0
        self._in_backward = False
        self._phase = "setup"
        self._done = False
        self.is_distributed = False
        self.skipped_checkpoints = False
        self._redirect = Redirect(
            target, self.log.is_ours, self._adopting, lambda tensor: self.log.categorize(tensor, "i")
        )

    def begin(self) -> None:
        attention.choose_kernels()
        dropout.choose_fused(self.target)
        cuda_answers.install(self.log)
        self._patch_loaders()
        self._patch_models()
        self._patch_backward()
        self._patch_optimizers()
        self._patch_devices()
        checkpoints.skip(self._on_checkpoint)
        gc.collect()
        gc.disable()
        self.log.phase("setup")
        self._redirect.__enter__()
        self.log.__enter__()

    @contextmanager
    def _adopting(self) -> Iterator[None]:
        before, self.log.adopting = self.log.adopting, True
        try:
            yield
        finally:
            self.log.adopting = before

    def _patch_devices(self) -> None:
        def set_default_device(device: Any) -> None:
            if is_cuda(device):
                self.log.adopting = True
                device = self.target
            real(device)

        real = torch.set_default_device
        torch.set_default_device = set_default_device
        parallel.install(self._on_group)

    def _on_group(self) -> None:
        self.is_distributed = True

    def _on_checkpoint(self, into_memory: bool) -> None:
        self.skipped_checkpoints = True
        if into_memory:  # the script may write the bytes over a file, which nobody could hold up
            fail(self.folder, "the script saves a checkpoint into memory: its destination is unknown")
            leave(1)

    # Where steps and phases begin and end.

    def _turn(self, phase: str) -> None:
        if phase != self._phase:
            self._phase = phase
            self.log.phase(phase)

    def _on_root(self) -> None:
        if not self._in_backward:
            self._turn("forward")

    def _patch_backward(self) -> None:
        def wrapped(real: Any) -> Any:
            def backward(*args: Any, **kwargs: Any) -> Any:
                outer, self._in_backward = self._in_backward, True
                self._turn("backward")
                try:
                    return real(*args, **kwargs)
                finally:
                    self._in_backward = outer
                    if not outer:
                        self.calls.categorize([])

            return backward

        torch.autograd.backward = wrapped(torch.autograd.backward)
        torch.autograd.grad = wrapped(torch.autograd.grad)

    def _patch_optimizers(self) -> None:
        begin = torch.optim.Optimizer.__init__

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._made += 1
            begin(optimizer, *args, **kwargs)

        torch.optim.Optimizer.__init__ = __init__
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        scaler: Any = torch.amp.GradScaler  # whether gradients are finite is a value that nobody has
        scaler._maybe_opt_step = lambda _, optimizer, state, *args, **kwargs: optimizer.step(*args, **kwargs)

    def _before_step(self, *_: Any) -> None:
        self._turn("optimizer")

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self._optimizers[id(optimizer)] = optimizer
        self.calls.categorize([optimizer])
        count = self._steps_of[id(optimizer)] = self._steps_of.get(id(optimizer), 0) + 1
        everyone = len(self._steps_of) >= self._made and min(self._steps_of.values()) >= self.steps
        if everyone or count > self.steps:
            self.finish()
            leave(0)
        self._turn("input")

    # What does not work on tensors without memory.

    def _patch_loaders(self) -> None:
        loader: Any = torch.utils.data.DataLoader
        begin = loader.__init__

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            # In this process alone: memory of the device does not depend on who reads the files.
            for name in (
                "num_workers",
                "prefetch_factor",
                "persistent_workers",
                "multiprocessing_context",
                "timeout",
                "pin_memory",
            ):
                kwargs.pop(name, None)
            begin(self, *args[:5], **kwargs)

        loader.__init__ = __init__

    def _patch_models(self) -> None:
        """`model.to("cuda")` keeps the identity of parameters, which optimizers and tied modules rely on; a tensor
        cannot change its kind in place by `.data`, so the two are swapped."""

        def apply(module: Any, convert: Any, recurse: bool = True) -> Any:
            if recurse:
                for child in module.children():
                    child._apply(convert)
            for parameter in module._parameters.values():
                if parameter is None:
                    continue
                with torch.no_grad():
                    _take_over(parameter, convert(parameter))
                    if parameter.grad is not None:
                        _take_over(parameter.grad, convert(parameter.grad))
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = convert(buffer)
            return module

        torch.nn.Module._apply = apply
        torch.nn.Module.cuda = lambda module, device=None: module._apply(lambda tensor: tensor.cuda(device))

    # The end.

    def finish(self) -> None:
        if self._done:
            return
        self._done = True
        log = self.log
        with torch._C.DisableTorchFunction():
            self.calls.categorize(list(self._optimizers.values()))
        if not any(event[0] == "a" for event in log.events):
            # No other way of running it would find more.
            open(os.path.join(self.folder, f"{os.getpid()}.final"), "w").close()
            return fail(self.folder, _NOTHING_ON_A_GPU)
        assumptions, unknown = [], []
        if log.values_read or self._redirect.values_read:
            assumptions.append(_VALUES_ARE_UNKNOWN)
        if log.benchmark is False:
            assumptions.append("workspaces of convolutions as cuDNN chose them on an H200, cudnn.benchmark off")
        if not log.has_partial_sums:
            assumptions.append("memory for partial sums of a bias's gradient is left out")
        if self.skipped_checkpoints:
            assumptions.append("checkpoints were not written")
        if self.is_distributed:
            unknown.append("buffers of collectives (NCCL) are not included")
        if self.calls.recurrent:
            unknown.append("recurrent layers: cuDNN's buffers for them are not included")
        if not self._steps_of:
            unknown.append("no optimizer made a step: the estimate covers what the script did until it ended")
        log.write(
            os.path.join(self.folder, f"{os.getpid()}.trace"),
            {
                "batch": self.batch,
                "torch": torch.__version__,
                "method": "script" if self.target == "meta" else "host",
                "steps": max(self._steps_of.values(), default=0),
                "optimizer": ", ".join(sorted({type(one).__name__ for one in self._optimizers.values()})),
                "assumptions": assumptions,
                "unknown": unknown,
            },
        )


def _take_over(tensor: torch.Tensor, new: torch.Tensor) -> None:
    if new is tensor:
        return
    if torch._has_compatible_shallow_copy_type(tensor, new):
        tensor.data = new
        return
    other: Any = new
    if isinstance(tensor, torch.nn.Parameter):
        other = torch.nn.Parameter(new, requires_grad=tensor.requires_grad)
    torch.utils.swap_tensors(tensor, other)


def fail(folder: str, reason: str) -> None:
    name = f"{os.getpid()}.error"
    if not os.path.exists(os.path.join(folder, name)):
        failed(folder, name, reason)


def leave(code: int) -> None:
    """Ends the process at once: nothing of the script runs again, neither what it does at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(code)


def begin(folder: str, target: str) -> None:
    trace = ScriptTrace(folder, target)

    def on_error(kind: Any, error: Any, traceback: Any) -> None:
        where = ""
        while traceback is not None:
            name = traceback.tb_frame.f_code.co_filename
            if "site-packages" not in name and not name.startswith("<") and os.path.dirname(__file__) not in name:
                where = f" ({os.path.basename(name)}:{traceback.tb_lineno})"
            traceback = traceback.tb_next
        fail(folder, f"{kind.__name__}: {error}{where}")
        leave(1)

    sys.excepthook = on_error
    atexit.register(trace.finish)
    trace.begin()
