"""Results of modules that are kept with their graph: kept_outputs.py outputs|between|once|nothing

`outputs`: a model's results, in a list. `between`: of a function over layers, what goes in between. `once`: a table that a layer makes
in its first call and adds ever after.
"""

import sys

import torch
from torch import nn

import gpumemprof

KEPT = sys.argv[1]


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None and KEPT == "once":
            self.table = torch.ones(64, 10)
        return x if self.table is None else x + self.table


torch.manual_seed(0)
torch.set_num_threads(1)
layers = nn.ModuleList([nn.Linear(32, 128), nn.Linear(128, 10), Shift()])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
kept = []
for _ in range(12):
    between = layers[0](torch.randn(64, 32))
    result = layers[2](layers[1](between.relu()))
    loss = nn.functional.cross_entropy(result, torch.zeros(64, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if KEPT == "outputs":
        kept.append(result)
    elif KEPT == "between":
        kept.append(between)
    del between, result, loss
with gpumemprof.phase("end"):
    pass
