"""Trainings of several ranks on the CPU: name → text. TORCHRUN: those that torchrun starts."""

HEAD = """
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils import data

torch.manual_seed(0)


def model():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))


def work(rank, m):
    o = torch.optim.AdamW(m.parameters())
    for _ in range(6):
        o.zero_grad()
        m(torch.randn(16, 64)).square().mean().backward()
        o.step()

"""
SPAWNED = HEAD + """
def rank_of(rank, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    %s
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank_of, (os.path.join(folder, "meeting"),), 2)
"""
RUN = HEAD + """
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
%s
dist.destroy_process_group()
"""
DDP = "work(rank, nn.parallel.DistributedDataParallel(model()))"

PROGRAMS = {
    "two ranks that are spawned": SPAWNED % DDP,
    "two ranks that load before they train": SPAWNED % (
        "images = [torch.randn(3, 16, 16) for _ in range(200)]\n    " + DDP + "\n    print(len(images))"),
    "metrics of all ranks": SPAWNED % (
        "for _ in range(20):\n        x = torch.full((100,), float(rank))\n        dist.all_reduce(x)\n"
        "        parts = [torch.empty(100) for _ in range(2)]\n        dist.all_gather(parts, x)"),
    "ranks with samplers and workers": SPAWNED % (
        "items = data.TensorDataset(torch.randn(64, 64))\n"
        "    sampler = data.distributed.DistributedSampler(items, 2, rank)\n"
        "    m = nn.parallel.DistributedDataParallel(model())\n    o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "    for epoch in range(2):\n        sampler.set_epoch(epoch)\n"
        "        for (x,) in data.DataLoader(items, batch_size=4, sampler=sampler, num_workers=1):\n"
        "            o.zero_grad()\n            m(x).square().mean().backward()\n            o.step()"),
    "ranks that share their parameters": SPAWNED % (
        "from torch.distributed.device_mesh import init_device_mesh\n    from torch.distributed.fsdp import fully_shard\n\n"
        "    m = model()\n    mesh = init_device_mesh('cpu', (2,))\n    for layer in m:\n"
        "        if isinstance(layer, nn.Linear):\n            fully_shard(layer, mesh=mesh)\n"
        "    fully_shard(m, mesh=mesh)\n    work(rank, m)"),
}  # fmt: skip
TORCHRUN = {
    "two ranks by torchrun": RUN % DDP,
    "a save by the first rank": RUN % (
        "m = nn.parallel.DistributedDataParallel(model())\nwork(rank, m)\nif rank == 0:\n"
        "    with tempfile.TemporaryDirectory() as folder:\n        torch.save(m.state_dict(), os.path.join(folder, 'm.pt'))\ndist.barrier()"),
}  # fmt: skip
