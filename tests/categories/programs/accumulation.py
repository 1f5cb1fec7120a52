"""Gradients of four batches add up before each step."""

import measured
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 256), nn.Softplus(), nn.Linear(256, 256), nn.Softplus(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())


def loss_of(net, x, y):
    return nn.functional.cross_entropy(net(x), y) / 4


measured.train(model, optimizer, lambda: (torch.randn(1024, 256), torch.randint(10, (1024,))), loss_of, 3, 4)
