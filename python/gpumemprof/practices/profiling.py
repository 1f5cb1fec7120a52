"""Measure first: the memory of a model's passes, and which changes are worthwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from .._core.printed import format_size
from .._core.torch import require_torch
from .._counting import counters

torch: Any = require_torch("profiling a model")


def profile_model(
    model: Any, dataloader: Iterable[Any], num_batches: int = 10, trace_folder: str | os.PathLike[str] | None = None
) -> Any:
    """PyTorch's profile of `num_batches` forward and backward passes after one warm-up pass; the loss is the mean of
    the outputs.

    Gradients are dropped after each batch, and files are written only if a folder is given. `gpumemprof.profile_model`
    is a different function: it wraps a model.
    """
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    ready = None if trace_folder is None else torch.profiler.tensorboard_trace_handler(str(trace_folder))
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=num_batches, repeat=1)
    with torch.profiler.profile(
        activities=activities, schedule=schedule, on_trace_ready=ready, record_shapes=True, profile_memory=True
    ) as profile:
        for number, batch in enumerate(dataloader):
            if number > num_batches:
                break
            with torch.profiler.record_function("forward_pass"):
                loss = model(batch).mean()
            with torch.profiler.record_function("backward_pass"):
                loss.backward()
            del loss
            model.zero_grad(set_to_none=True)
            profile.step()
    return profile


def analyze_profiling_results(prof: Any) -> list[dict[str, Any]]:
    """The profile's operations, those that allocate most first: name, cpu_time and cuda_time in µs, cpu_memory and
    cuda_memory in bytes, call_count."""
    rows = []
    for item in prof.key_averages():
        rows.append(
            {
                "name": item.key,
                "cpu_time": item.cpu_time_total,
                "cuda_time": getattr(item, "device_time_total", getattr(item, "cuda_time_total", 0)),
                "cpu_memory": item.self_cpu_memory_usage,
                "cuda_memory": getattr(item, "self_device_memory_usage", getattr(item, "self_cuda_memory_usage", 0)),
                "call_count": item.count,
            }
        )
    return sorted(rows, key=lambda row: -max(row["cpu_memory"], row["cuda_memory"]))


def profile_memory_usage(
    model: Any, input_size: tuple[int, ...] = (1000, 1000), device: Any = None
) -> dict[str, Any]:
    """Memory before, at the peak of and after one forward and backward pass of random input; gradients are dropped.

    Works on the CPU too. The peak is that of the pass; no counter of PyTorch is reset.
    """
    where = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    source = counters.source_for(device if device is not None else where)
    span = source.begin()
    data = torch.randn(*input_size, device=where)
    model(data).mean().backward()
    figures = counters.figures_of(source, span.end())
    model.zero_grad(set_to_none=True)
    before = figures.before.allocated_bytes
    return {
        "initial_bytes": before,
        "peak_bytes": figures.peak_bytes,
        "final_bytes": figures.after.allocated_bytes,
        "increase_bytes": figures.peak_bytes - before,
        "peak_is_exact": figures.peak_is_exact,
        "basis": source.basis,
    }


def optimize_based_on_profiling(profiling_results: Iterable[dict[str, Any]]) -> list[str]:
    """Suggestions for the operations that allocate most, with their bytes, largest first.

    These are hints from sums of allocations. `gpumemprof advise` uses what was live at the peak, and measures.
    """
    rules: tuple[tuple[Callable[[str], bool], str], ...] = (
        (lambda name: name.startswith("Optimizer."), "foreach=False for the optimizer: fewer temporaries at once"),
        (lambda name: "embedding" in name and "backward" in name, "SparseEmbedding: gradients of the rows used"),
        (lambda name: name.startswith("aten::") and "backward" not in name,
         "checkpointing or mixed precision: what forward allocates is kept for backward"),
    )  # fmt: skip
    found: dict[str, int] = {}
    for row in profiling_results:
        size = max(row["cpu_memory"], row["cuda_memory"])
        words = next((words for fits, words in rules if fits(row["name"])), None)
        if words is not None and size > 0:
            found[words] = found.get(words, 0) + size
    ordered = sorted(found.items(), key=lambda pair: -pair[1])
    return [f"{format_size(size)} allocated: {words}" for words, size in ordered]


def profile_first_approach(model: Any, dataloader: Iterable[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The model's operations on these batches, and suggestions."""
    rows = analyze_profiling_results(profile_model(model, dataloader))
    return rows, optimize_based_on_profiling(rows)
