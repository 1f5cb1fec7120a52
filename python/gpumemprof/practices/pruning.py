"""Removing weights."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("pruning")
import_module("torch.nn.utils.prune")  # not loaded by torch itself in every release


def prune_model(model: Any, pruning_ratio: float = 0.2, structured: bool = False) -> Any:
    """Sets the smallest weights of all Linear and Conv2d layers to zero with torch.nn.utils.prune; returns the model
    itself.

    Zeros take as much memory as other numbers. `structured` instead removes whole neurons from a Sequential of Linear
    layers, with the weights that read them, so the model has fewer parameters; the last layer's neurons remain. Raises
    TypeError for models of another form.
    """
    if not 0 <= pruning_ratio < 1:
        raise ValueError(f"pruning_ratio is a share, 0 to less than 1, not {pruning_ratio}")
    if structured:
        return _without_neurons(model, pruning_ratio)
    prune = torch.nn.utils.prune
    layers = [
        (module, "weight") for module in model.modules() if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d))
    ]
    if not layers:
        raise TypeError("no Linear and no Conv2d is in the model")
    prune.global_unstructured(layers, pruning_method=prune.L1Unstructured, amount=pruning_ratio)
    for module, name in layers:
        prune.remove(module, name)
    return model


def fine_grained_pruning(model: Any, layers_to_prune: Iterable[str], amount: float = 0.3) -> Any:
    """The same for the named layers, each on its own. Raises LookupError for a name that is not in the model."""
    prune = torch.nn.utils.prune
    modules = dict(model.named_modules())
    names = list(layers_to_prune)
    unknown = [name for name in names if name not in modules]
    if unknown:
        raise LookupError(f"the model has no module {', '.join(map(repr, unknown))}")
    for name in names:
        prune.l1_unstructured(modules[name], name="weight", amount=amount)
        prune.remove(modules[name], "weight")
    return model


# What may stand between two Linear layers: it works on each neuron by itself, and zero neurons leave it as they came.
_ELEMENTWISE = ("ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "Dropout", "LeakyReLU", "ELU", "Identity")


def _without_neurons(model: Any, ratio: float) -> Any:
    if not isinstance(model, torch.nn.Sequential):
        raise TypeError("structured pruning takes a Sequential of Linear layers")
    linear = [module for module in model if isinstance(module, torch.nn.Linear)]
    foreign = [type(m).__name__ for m in model if m not in linear and type(m).__name__ not in _ELEMENTWISE]
    if foreign or len(linear) < 2:
        raise TypeError(f"structured pruning takes Linear layers and functions of each neuron, not {foreign}")
    with torch.no_grad():
        for layer, reader in zip(linear, linear[1:]):
            kept = layer.out_features - int(layer.out_features * ratio)
            strength = layer.weight.norm(dim=1) * reader.weight.norm(dim=0)
            rows = strength.topk(kept).indices.sort().values
            _keep(layer, "weight", layer.weight[rows])
            if layer.bias is not None:
                _keep(layer, "bias", layer.bias[rows])
            _keep(reader, "weight", reader.weight[:, rows])
            layer.out_features = reader.in_features = kept
    return model


def _keep(module: Any, name: str, values: Any) -> None:
    before = getattr(module, name)
    setattr(module, name, torch.nn.Parameter(values.contiguous(), requires_grad=before.requires_grad))
