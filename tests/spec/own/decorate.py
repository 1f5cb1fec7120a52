"""The decorator, the context and the wrapped model, which share one profiler; the profiler as a decorator."""

import torch
from expect import MIB, device, exactly, touched

import gpumemprof
from gpumemprof import GPUMemoryProfiler, MemoryProfiler, ProfiledModule
from gpumemprof import profile_context, profile_function, profile_model


@profile_function
def plain():
    touched(2)


@profile_function(name="a name of its own")
def named(mebibytes):
    return touched(mebibytes)


plain()
assert named(3).nbytes == 3 * MIB
with profile_context("outer"):
    with profile_context("inner"):
        touched(5)
    touched(1)

model = torch.nn.Linear(6, 4, device=device)
wrapped = ProfiledModule(model)
batch = torch.ones(2, 6, device=device)
assert torch.equal(wrapped(batch), model(batch))
assert list(wrapped.state_dict()) == list(model.state_dict())

results = gpumemprof.get_profile_results()
assert [r.function_name.split(".")[-1] for r in results[:4]] == ["plain", "a name of its own", "inner", "outer"]
for result, mebibytes in zip(results[:4], (2, 3, 5, 5)):
    exactly(result.peak_memory_usage() - result.memory_before.allocated_memory, mebibytes * MIB)
exactly(results[4].memory_diff(), 2 * 4 * 4)
assert torch.equal(profile_model(model)(batch), model(batch))

profiler = GPUMemoryProfiler()


@profiler.profile_function
def scaled(tensor, factor=2):
    return tensor * factor


assert scaled(batch).sum() == 24
assert len(profiler.results) == 1
assert MemoryProfiler().profile(plain).function_name.endswith("plain")
