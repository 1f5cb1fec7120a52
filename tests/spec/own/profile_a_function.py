"""A profiler, a function under it, a block under it, and what they took in sum."""

import torch
from expect import basis, device, exactly, loss_of, model_and_batch

from gpumemprof import GPUMemoryProfiler

profiler = GPUMemoryProfiler()
model, features, labels = model_and_batch()

step = profiler.profile_function(loss_of, model, features, labels)

with profiler.profile_context("evaluate"):
    with torch.no_grad():
        scores = model(features)

summary = profiler.get_summary()
print(f"{step.function_name} was at {step.peak_memory_usage() / 2**20:.2f} MiB")
print(f"all together at {summary['peak_memory_usage'] / 2**20:.2f} MiB")

assert (profiler.basis, step.basis) == (basis, basis), step.basis_reason
assert step.function_name.endswith("loss_of")
# Gradients of 20 x 8 weights and 8 biases, and the loss, of four bytes each.
exactly(step.memory_diff(), (20 * 8 + 8 + 1) * 4)
evaluated = profiler.results[-1]
assert evaluated.function_name == "evaluate"
exactly(evaluated.memory_diff(), scores.numel() * 4)
assert summary["peak_memory_usage"] >= step.peak_memory_usage() > 0
assert (summary["total_functions_profiled"], summary["total_function_calls"]) == (2, 2)
exactly(summary["function_summaries"][step.function_name]["peak_memory"], step.peak_memory_usage())

profiler.clear_results()
assert profiler.results == [] and profiler.get_summary()["total_function_calls"] == 0
assert GPUMemoryProfiler(device=device).device == torch.device(profiler.device)
