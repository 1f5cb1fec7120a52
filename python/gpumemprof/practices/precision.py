"""Half precision where it is safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core.torch import require_torch
from ._batches import moved

torch: Any = require_torch("mixed precision")


def mixed_precision_training_example(
    model: Any,
    optimizer: Any,
    dataloader: Iterable[Any],
    criterion: Callable[[Any, Any], Any],
    dtype: Any = None,
) -> list[float]:
    """Trains under autocast on batches of (inputs, targets), or dictionaries with "input" and "target"; returns the
    losses.

    Uses bfloat16, which needs no scaling, if the device supports it; otherwise float16 with a GradScaler. Weights,
    gradients and optimizer state stay float32. Only activations shrink, so at most half of the memory is saved.
    """
    device = next(model.parameters()).device
    if dtype is None:
        has_bfloat16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
        dtype = torch.bfloat16 if has_bfloat16 else torch.float16
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
    losses = []
    for batch in dataloader:
        inputs, targets = (batch["input"], batch["target"]) if isinstance(batch, dict) else batch
        inputs, targets = moved(inputs, device), moved(targets, device)
        with torch.autocast(device.type, dtype=dtype):
            outputs = model(inputs)
            loss = criterion(outputs, targets)
        del outputs
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        del loss
    return losses
