"""Modules and training loops under the profiler. Imports PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from .._core.torch import require_torch
from .profiler import GPUMemoryProfiler
from .shared import get_global_profiler

torch: Any = require_torch("profiling modules")


_LEVEL = "module."  # what the wrapper would add to the name of all that is below it


class ProfiledModule(torch.nn.Module):  # type: ignore[misc]
    """A module whose forward passes are profiled as `NAME_forward`; otherwise it behaves like the module itself.

    Attributes, parameters and the keys of its state_dict are the module's own, so a checkpoint of either loads into
    either, also within a larger model. Results are in `profiler`, or in the shared one. A copy has the same profiler.
    Pickling drops the profiler; the loaded module uses the shared one.
    """

    def __init__(
        self, module: Any, name: str | None = None, device: Any = None, profiler: GPUMemoryProfiler | None = None
    ) -> None:
        super().__init__()
        self.profile_name = name or type(module).__name__
        self._profiler: GPUMemoryProfiler | None = profiler or get_global_profiler(device)
        self.module = module
        self.register_load_state_dict_post_hook(_name_as_the_model_does)

    @property
    def profiler(self) -> GPUMemoryProfiler:
        """The profiler that has the results."""
        profiler = self._profiler
        if profiler is None:  # it was pickled; asked only now, as loading may not want a device yet
            profiler = self._profiler = get_global_profiler()
        return profiler

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward pass, measured."""
        with self.profiler.profile_context(f"{self.profile_name}_forward"):
            return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":  # not there yet: asking it would ask us again
                raise
            return getattr(super().__getattr__("module"), name)

    # A profiler is of this process: threads, locks, figures.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_profiler": None}

    def __copy__(self) -> ProfiledModule:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> ProfiledModule:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(self.__getstate__(), memo), _profiler=self._profiler)
        return copied

    # The wrapper is no level of the model: what is asked of it is asked of the module.
    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.module.load_state_dict(*args, **kwargs)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any,
        errors: list[str],
    ) -> None:  # fmt: skip
        # A model that we are a part of loads by walking over its parts, and comes to ours as "module."
        renamed = {prefix + _LEVEL + key[len(prefix) :]: key for key in list(state_dict) if key.startswith(prefix)}
        state_dict.update({new: state_dict.pop(key) for new, key in renamed.items()})
        self.__dict__["_loading"] = prefix, errors
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        # Both under one name, which makes the names of all that is below those of the model.
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self
            yield from self.module.named_modules(memo, prefix, remove_duplicate)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        return self.module.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Any:
        return self.module.named_buffers(*args, **kwargs)

    def __len__(self) -> int:
        return len(self.module)

    def __getitem__(self, index: Any) -> Any:
        return self.module[index]

    def __iter__(self) -> Any:
        return iter(self.module)


def _name_as_the_model_does(wrapper: Any, incompatible: Any) -> None:
    """After loading: what is said of missing and unexpected keys and of shapes names the keys of the checkpoint."""
    prefix, errors = wrapper.__dict__.pop("_loading", ("", []))
    ours = prefix + _LEVEL
    for names in (incompatible.missing_keys, incompatible.unexpected_keys):
        names[:] = [prefix + key[len(ours) :] if key.startswith(ours) else key for key in names]
    errors[:] = [error.replace(ours, prefix) for error in errors]


def profile_model(
    model: Any, name: str | None = None, device: Any = None, profiler: GPUMemoryProfiler | None = None
) -> ProfiledModule:
    """The model as a ProfiledModule. Its device is by default that of its first parameter."""
    if device is None and profiler is None:
        parameter = next(iter(model.parameters()), None)
        device = None if parameter is None or parameter.device.type not in ("cpu", "cuda") else parameter.device
    return ProfiledModule(model, name=name, device=device, profiler=profiler)


def profile_model_training(
    model: Any,
    train_loader: Iterable[Any],
    epochs: int = 1,
    device: Any = None,
    *,
    optimizer: Any = None,
    loss_fn: Any = None,
    profiler: GPUMemoryProfiler | None = None,
) -> dict[str, Any]:
    """Trains the model and profiles every batch: forward, loss, backward, optimizer step.

    A batch of `train_loader` is (inputs, targets). The loss is `loss_fn(outputs, targets)`; by default cross entropy
    for integer targets and the mean squared error for others, or the mean of the outputs if there are no targets or the
    shapes do not fit. The default optimizer is SGD with a rate of 0.01.

    Returns {"total_epochs", "batch_results" (a dict per batch: epoch, batch, loss and the ProfileResult's keys),
    "epoch_summaries" (epoch, batches, mean_loss, peak_memory in bytes, time in seconds), "overall_summary"}.
    """
    if epochs < 0:
        raise ValueError("epochs must be >= 0")
    profiler = profiler or get_global_profiler(device)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if optimizer is None and parameters:
        optimizer = torch.optim.SGD(parameters, lr=0.01)
    place = parameters[0].device if parameters else torch.device(str(profiler.device))
    batch_results: list[dict[str, Any]] = []
    epoch_summaries: list[dict[str, Any]] = []
    was_training = model.training
    model.train()
    try:
        for epoch in range(epochs):
            rows = []
            for number, batch in enumerate(train_loader):
                inputs, targets = _split(batch, place)
                with profiler.profile_context(f"epoch_{epoch}_batch") as block:
                    loss = _step(model, inputs, targets, optimizer, loss_fn)
                rows.append({"epoch": epoch, "batch": number, "loss": loss, **block.result.to_dict()})
            batch_results += rows
            epoch_summaries.append(_epoch_summary(epoch, rows))
    finally:
        model.train(was_training)
    return {
        "total_epochs": epochs,
        "batch_results": batch_results,
        "epoch_summaries": epoch_summaries,
        "overall_summary": profiler.get_summary(),
    }


def _split(batch: Any, place: Any) -> tuple[Any, Any]:
    parts = list(batch) if isinstance(batch, (tuple, list)) else [batch]
    parts = [part.to(place) if isinstance(part, torch.Tensor) else part for part in parts]
    return parts[0], parts[1] if len(parts) > 1 else None


def _step(model: Any, inputs: Any, targets: Any, optimizer: Any, loss_fn: Any) -> float:
    outputs = model(inputs)
    loss = _loss(outputs, targets, loss_fn)
    if optimizer is not None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def _loss(outputs: Any, targets: Any, loss_fn: Any) -> Any:
    if loss_fn is not None:
        return loss_fn(outputs, targets)
    if targets is None:
        return outputs.mean()
    if not targets.is_floating_point():
        return torch.nn.functional.cross_entropy(outputs, targets)
    return torch.nn.functional.mse_loss(outputs, targets) if outputs.shape == targets.shape else outputs.mean()


def _epoch_summary(epoch: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "batches": len(rows),
        "mean_loss": sum(row["loss"] for row in rows) / len(rows) if rows else None,
        "peak_memory": max((row["peak_memory_usage"] for row in rows), default=None),
        "total_time": sum(row["execution_time"] for row in rows),
    }
