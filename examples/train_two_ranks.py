"""Data-parallel training for torchrun, on the CPU: torchrun --nproc-per-node 2 examples/train_two_ranks.py"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")  # "nccl" where each rank has a GPU
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    loss = model(torch.randn(256, 512)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"rank {os.environ['RANK']}: loss {loss.item():.3f}", flush=True)
dist.destroy_process_group()
