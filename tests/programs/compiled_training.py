"""Trains a model that torch.compile made, and calls it once without gradients: compiled_training.py BACKEND"""

import sys

import torch
from torch import nn

import gpumemprof

torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8))
optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
compiled = torch.compile(net, backend=sys.argv[1])
for step in range(8):
    data = torch.randn(256, 64)
    result = compiled(data)
    with gpumemprof.phase(f"end of forward {step}"):
        pass
    result.square().mean().backward()
    del result, data
    optimizer.step()
    optimizer.zero_grad()
with torch.no_grad():
    for _ in range(2):
        compiled(torch.randn(256, 64))
