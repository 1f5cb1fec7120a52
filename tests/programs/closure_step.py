"""A step of forward and backward, in a closure that the optimizer calls or before it: closure_step.py plain|closure|lbfgs [keep]

With `keep` every step's hidden layer is put in a list.
"""

import sys

import torch
from torch import nn

import gpumemprof

HOW = sys.argv[1]
kept = []
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 8))
if HOW == "lbfgs":
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3, history_size=2)
else:
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=False)


def closure():
    optimizer.zero_grad()
    data = torch.randn(256, 64)
    hidden = net[1](net[0](data))
    result = net[2](hidden)
    loss = result.square().mean()
    with gpumemprof.phase("end of forward"):
        pass
    loss.backward()
    with gpumemprof.phase("end of backward"):
        pass
    if "keep" in sys.argv:
        kept.append(hidden)
    return loss


for _ in range(60 if "keep" in sys.argv else 5):
    if HOW == "plain":
        closure()
        optimizer.step()
    else:
        optimizer.step(closure)
