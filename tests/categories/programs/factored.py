"""An optimizer of the program's own that keeps a row and a column of squares for each matrix, as Adafactor does."""

import measured
import torch
from torch import nn


class Factored(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.01})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                squares, kept = weight.grad**2 + 1e-30, self.state[weight]
                if weight.dim() == 2:
                    kept.setdefault("row", torch.zeros(weight.shape[0])).lerp_(squares.mean(1), 0.1)
                    kept.setdefault("column", torch.zeros(weight.shape[1])).lerp_(squares.mean(0), 0.1)
                    scale = torch.outer(kept["row"], kept["column"]) / kept["row"].mean()
                else:
                    scale = kept.setdefault("whole", torch.zeros_like(weight)).lerp_(squares, 0.1)
                weight -= group["lr"] * weight.grad / scale.sqrt()


def loss_of(net, x, y):
    return ((net(x) - y) ** 2).mean()


model = nn.Sequential(nn.Linear(300, 400), nn.SiLU(), nn.Linear(400, 400), nn.SiLU(), nn.Linear(400, 20))
measured.train(model, Factored(model.parameters()), lambda: (torch.randn(700, 300), torch.randn(700, 20)), loss_of)
