"""Gradients only where and as long as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("gradients")


def inference_mode(model: Any, input_data: Any) -> Any:
    """The model's output, with nothing kept for a backward pass. Unlike that of torch.inference_mode, the output may be
    used in a later one."""
    with torch.no_grad():
        return model(input_data)


def freeze_layers(model: Any, trainable: Iterable[str] = ("classifier",)) -> list[str]:
    """Trains only the named modules; returns the names of the trained parameters.

    Existing gradients of frozen parameters are dropped. Raises LookupError for a name that is not in the model:
    everything would be frozen.
    """
    chosen = [model.get_submodule(name) for name in _known(model, trainable)]
    for parameter in model.parameters():
        parameter.requires_grad = False
    for module in chosen:
        for parameter in module.parameters():
            parameter.requires_grad = True
    for parameter in model.parameters():
        if not parameter.requires_grad:
            parameter.grad = None
    return [name for name, parameter in model.named_parameters() if parameter.requires_grad]


def selective_gradients(
    model: Any, preprocess: Callable[[Any], Any], criterion: Callable[[Any, Any], Any], data: Any, target: Any
) -> float:
    """A training pass that keeps nothing of `preprocess`; returns the loss. Gradients are in `.grad`."""
    with torch.no_grad():
        processed = preprocess(data)
    with torch.enable_grad():
        loss = criterion(model(processed), target)
        loss.backward()
    return float(loss.detach())


def efficient_training_loop(
    model: Any, optimizer: Any, dataloader: Iterable[Any], criterion: Callable[[Any, Any], Any]
) -> list[float]:
    """Trains on batches of (inputs, targets); returns the losses as numbers.

    Gradients are dropped right after the optimizer's step, so the next forward pass can use their memory.
    """
    losses = []
    for inputs, targets in dataloader:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        del loss
    return losses


def _known(model: Any, names: Iterable[str]) -> list[str]:
    paths = {path for path, _ in model.named_modules()}
    listed = list(names)
    unknown = [name for name in listed if name not in paths]
    if unknown:
        raise LookupError(f"the model has no module {', '.join(map(repr, unknown))}")
    return listed
