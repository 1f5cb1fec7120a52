"""Intermediate results that are no longer needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core.torch import require_torch


def memory_efficient_processing(
    pieces: Iterable[Any],
    process: Callable[[Any], Any],
    reduce: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Applies `process` to every piece and reduces the results as they come: one piece and the result are live at a
    time.

    Collecting the results in a list and stacking them would need twice their memory. `reduce` is by default addition,
    in place once the sum is a tensor of its own.
    """
    require_torch("memory_efficient_processing")
    total, is_ours = None, False
    for piece in pieces:
        part = process(piece)
        del piece  # a generator's frame and this one would else hold it while the next is made
        if total is None:
            total = part
        elif reduce is not None:
            total = reduce(total, part)
        elif is_ours and total.shape == part.shape and total.dtype == part.dtype:
            total.add_(part)
        else:
            total, is_ours = total + part, True
        del part
    if total is None:
        raise ValueError("there is no piece")
    return total
