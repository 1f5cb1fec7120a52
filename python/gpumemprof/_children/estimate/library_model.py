"""A training loop of ours around a model of timm or torchvision, as timm's train.py runs it by default: channels first,
label smoothing, the next batch loaded on a stream of its own while this one is worked on."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as functional
from torch.utils._python_dispatch import TorchDispatchMode

from ..error import NoAnswer
from . import attention, dropout
from .autocast import Casting
from .events import SCALED_BATCHES, EventLog
from .modules import ModuleCalls, move

DEVICE = "meta"
_DTYPES = {"fp32": None, "tf32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
_CASTS = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}


@dataclass
class LoopSetup:
    model: str  # "timm:resnet50"
    batch: int
    optimizer: str = "adamw"
    precision: str = "fp32"
    checkpointing: bool = False
    inference: bool = False
    steps: int = 2
    facts: dict[str, Any] = field(default_factory=dict)


class _Uninitialised(TorchDispatchMode):  # type: ignore[misc]
    """While a model is built: its weights are left as they are. Their values are of no interest, and writing them would
    touch every page of a large model. Indices are computed: some models build on them."""

    def __enter__(self) -> Any:
        # It draws again until all values are in range: of values that nobody writes, forever.
        self._truncated = torch.nn.init._no_grad_trunc_normal_
        torch.nn.init._no_grad_trunc_normal_ = lambda tensor, *args, **kwargs: tensor
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.nn.init._no_grad_trunc_normal_ = self._truncated

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if args and func._schema.is_mutable and func._schema.name.endswith("_"):
            target = args[0]
            if isinstance(target, torch.Tensor) and target.is_floating_point() and target.numel() >= 1024:
                return target
        return func(*args, **(kwargs or {}))


def import_torchvision() -> Any:
    """Its compiled operators may be those of another build of PyTorch. Their names alone are enough for models that do
    not call them, so they are declared where they are missing."""
    try:
        import torchvision
    except RuntimeError as error:
        if "does not exist" not in str(error):
            raise
        import sys

        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_torchvision.kept = library  # type: ignore[attr-defined]
        import torchvision
    return torchvision


def build(name: str) -> tuple[torch.nn.Module, tuple[int, ...]]:
    """The model and the size of one input."""
    library, _, model = name.partition(":")
    try:
        if library == "timm":
            import_torchvision()
            import timm

            with _Uninitialised():
                made = timm.create_model(model, pretrained=False)
            return made, tuple(getattr(made, "default_cfg", {}).get("input_size", (3, 224, 224)))
        if library == "torchvision":
            models = import_torchvision().models
            with _Uninitialised():
                return models.get_model(model, weights=None), (3, 224, 224)
    except ImportError as error:
        raise NoAnswer(f"{library} cannot be imported: {error}") from None
    except (RuntimeError, ValueError) as error:
        raise NoAnswer(f"{name}: {error}") from None
    raise NoAnswer(f"{name}: write timm:NAME or torchvision:NAME")


def make_optimizer(name: str, groups: list[dict[str, Any]]) -> Any:
    optim: Any = torch.optim
    if name == "sgd":
        return optim.SGD(groups, lr=0.05, foreach=True)
    if name == "momentum":
        return optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True, foreach=True)
    plain = {
        "adam": "Adam",
        "adamw": "AdamW",
        "rmsprop": "RMSprop",
        "adagrad": "Adagrad",
        "adadelta": "Adadelta",
        "adamax": "Adamax",
        "nadam": "NAdam",
        "radam": "RAdam",
    }
    if name in plain:
        return getattr(optim, plain[name])(groups, lr=1e-3, foreach=True)
    if name == "adafactor" and hasattr(optim, "Adafactor"):
        return optim.Adafactor(groups, lr=1e-3, foreach=True)
    raise NoAnswer(f"there is no optimizer {name!r} here: sgd, momentum, {', '.join(plain)}, adafactor")


def trace(setup: LoopSetup) -> EventLog:
    """Two iterations (the second has the optimizer's state from its start; more change nothing)."""
    attention.choose_kernels()
    dropout.choose_fused()
    _allow_autocast_of_nothing()
    if setup.precision not in (*_DTYPES, *_CASTS):
        raise NoAnswer(f"there is no precision {setup.precision!r} here: {', '.join((*_DTYPES, *_CASTS))}")
    model, input_size = build(setup.model)
    setup.facts["input_size"] = list(input_size)
    log = EventLog(lambda tensor: tensor.device.type == DEVICE)
    log.has_partial_sums = setup.batch not in SCALED_BATCHES
    calls = ModuleCalls(log)
    gc.collect()
    gc.disable()  # a collection in the middle would free at another event each time
    torch.backends.cudnn.benchmark = True
    try:
        with log:
            _loop(setup, model, input_size, log, calls)
    finally:
        gc.enable()
        calls.close()
    return log


def _allow_autocast_of_nothing() -> None:
    """Some models switch autocast off for the device of a tensor, and there is none for tensors without memory."""
    kind = torch.amp.autocast_mode.autocast
    if getattr(kind, "_gpumemprof", False):
        return
    begin: Any = kind.__init__

    def __init__(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == "meta":
            now = torch.is_autocast_enabled("cuda")
            device_type, args, kwargs = "cuda" if now else "cpu", (), {"enabled": False}
        begin(self, device_type, *args, **kwargs)

    kind.__init__ = __init__
    kind._gpumemprof = True


def _loop(setup: LoopSetup, model: Any, input_size: tuple[int, ...], log: EventLog, calls: ModuleCalls) -> None:
    dtype = _DTYPES.get(setup.precision)
    casting = Casting(_CASTS[setup.precision]) if setup.precision in _CASTS else nullcontext()
    log.phase("setup")
    move(model, log, DEVICE, dtype)
    calls.know(model)
    model.train(not setup.inference)
    if setup.checkpointing:
        if not hasattr(model, "set_grad_checkpointing"):
            raise NoAnswer(f"{setup.model} has no activation checkpointing of its own")
        model.set_grad_checkpointing(True)
    optimizer = (
        None if setup.inference or setup.optimizer == "none" else make_optimizer(setup.optimizer, _groups(model))
    )
    loader = _Loader(setup.batch, input_size, log, dtype)
    upcoming = loader.load()
    for _ in range(setup.steps):
        data, target = upcoming
        upcoming = loader.load()
        log.phase("forward")
        with torch.set_grad_enabled(not setup.inference), casting:
            output = model(data)
            output = output[0] if isinstance(output, (tuple, list)) else output
            loss = None if setup.inference else _smoothed_loss(output, target)
        del output
        if loss is not None:
            log.phase("backward")
            loss.backward()
        calls.categorize([])
        if optimizer is not None:
            log.phase("optimizer")
            optimizer.step()
            calls.categorize([optimizer])
            optimizer.zero_grad()


def _groups(model: Any) -> list[dict[str, Any]]:
    """Vectors (biases, norms) first and without decay, as timm has them: their order is that of the state."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in trained if parameter.ndim <= 1], "weight_decay": 0.0},
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": 2e-5},
    ]


class _Loader:
    """Bytes come over as they are and become numbers on the device, on stream 1."""

    def __init__(self, batch: int, input_size: tuple[int, ...], log: EventLog, dtype: torch.dtype | None) -> None:
        self._shape, self._log, self._dtype = (batch, *input_size), log, dtype or torch.float32
        self._mean = torch.empty(1, 3, 1, 1, device=DEVICE, dtype=self._dtype)
        self._deviation = torch.empty(1, 3, 1, 1, device=DEVICE, dtype=self._dtype)

    def load(self) -> tuple[torch.Tensor, torch.Tensor]:
        self._log.phase("input")
        self._log.stream = 1
        pixels = torch.empty(self._shape, dtype=torch.uint8, device=DEVICE)
        target = torch.empty(self._shape[:1], dtype=torch.long, device=DEVICE)
        data = pixels.to(self._dtype)
        del pixels
        data.sub_(self._mean).div_(self._deviation)
        self._log.stream = 0
        for tensor in (data, target, self._mean, self._deviation):
            self._log.categorize(tensor, "i")
        return data, target


def _smoothed_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    logarithms = functional.log_softmax(output, -1)
    likelihood = -logarithms.gather(-1, target.unsqueeze(1)).squeeze(1)
    spread = -logarithms.mean(-1)
    return (0.9 * likelihood + 0.1 * spread).mean()
