"""Uses PyTorch's own profiler with everything on and prints what must be the same with and without a recorder."""
import sys
import warnings

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
if "error" not in sys.warnoptions:
    warnings.warn("a warning of the program's own")
    torch.tensor(torch.ones(2))  # warns
before = torch.ones(1000)  # freed while the profiler is on: PyTorch does not know its size


def step(number):
    loss = model(torch.randn(16, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(number, loss.item().hex(), flush=True)


def name_of(event):
    try:
        return event.name()
    except UnicodeDecodeError:  # PyTorch cuts a few names of Python functions inside a character
        return ""


for with_stack in (True, False):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True,
                                with_stack=with_stack, record_shapes=True) as profiler:
        for number in range(4):
            step(number)
        before = None
    names = [(name_of(e), e) for e in profiler.profiler.kineto_results.events()]
    memory = [e.nbytes() for name, e in names if name == "[memory]"]
    print("memory events", len(memory), "sum", sum(memory), sorted(memory))
    print("operators", sorted(name for name, _ in names if name.startswith("aten::")))
for average in sorted(profiler.key_averages(), key=lambda a: a.key):
    print(average.key, average.count, average.cpu_memory_usage, average.self_cpu_memory_usage)

with torch.autograd.profiler.profile(profile_memory=True) as old_style:
    step(99)
print(sorted((e.name, e.cpu_memory_usage) for e in old_style.function_events))
print("stderr of the program", file=sys.stderr, flush=True)
