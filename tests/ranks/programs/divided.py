"""A small training under torchrun, on the CPU, divided as named: divided.py data|sharded|pipeline|tensor|expert|plain STEPS

Sizes are such that what a rank holds can be computed by hand: see test_ranks.py."""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

KIND, STEPS = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
torch.set_num_threads(1)


def train(model, step, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        step()
        optimizer.step()
        optimizer.zero_grad()


def layers(width=256, wide=1024):
    return nn.Sequential(nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, width))


def data():
    """Rank 2 keeps a megabyte (of 10^6 floats) a step, and is late."""
    model = nn.parallel.DistributedDataParallel(layers())
    kept = []

    def step():
        if RANK == 2:
            time.sleep(0.1)
            kept.append(torch.zeros(1_000_000))
        model(torch.randn(8, 256)).square().mean().backward()

    train(model, step)


def sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(layers(), layers())
    mesh = init_device_mesh("cpu", (SIZE,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, lambda: model(torch.randn(8, 256)).square().mean().backward())


def pipeline():
    """Rank r has r + 1 layers, numbered through."""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    first = sum(range(1, RANK + 1))
    stage = nn.Sequential()
    for i in range(first, first + RANK + 1):
        stage.add_module(f"layer{i}", layers())
    schedule = ScheduleGPipe(PipelineStage(stage, RANK, SIZE, torch.device("cpu")), n_microbatches=2,
                             loss_fn=lambda out, target: (out - target).square().mean())

    def step():
        if RANK == 0:
            schedule.step(torch.randn(8, 256))
        elif RANK == SIZE - 1:
            schedule.step(target=torch.randn(8, 256))
        else:
            schedule.step()

    train(stage, step)


def tensor():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(256), nn.Linear(256, 1024), nn.Linear(1024, 256)

        def forward(self, x):
            return self.down(torch.relu(self.up(self.norm(x))))

    mesh = init_device_mesh("cpu", (SIZE,))
    model = parallelize_module(Block(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    train(model, lambda: model(torch.randn(8, 256)).square().mean().backward(),
          torch.optim.SGD(model.parameters(), lr=0.1, foreach=False))


def expert():
    """Two experts a rank; more tokens go to the last rank."""

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(256, 8)
            self.experts = nn.ModuleDict({str(2 * RANK + i): nn.Linear(256, 256) for i in range(2)})

        def forward(self, x):
            tokens = torch.randn(4000 if RANK == SIZE - 1 else 16, 256)
            return self.gate(x).square().sum() + sum(e(tokens).square().sum() for e in self.experts.values())

    model = Experts()

    def step():
        model(torch.randn(8, 256)).backward()
        for parameter in model.gate.parameters():
            dist.all_reduce(parameter.grad)

    train(model, step)


def plain():
    """Barriers, and a process in the middle that does not come back: RANK and how, in DIES."""
    kept = torch.zeros(250_000)
    for i in range(STEPS):
        dist.barrier()
        if os.environ.get("DIES") == f"{RANK}" and i == STEPS // 2:
            time.sleep(2)  # so that a machine with much to do sees the process before it is gone
            os.kill(os.getpid(), 9)
        kept = kept + 1


globals()[KIND]()
dist.destroy_process_group()
# gloo's workers drop what they finished: while Python finalizes that aborts the process (pytorch issue 190489).
time.sleep(0.5)
