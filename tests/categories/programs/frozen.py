"""A part that does not learn before one that does."""

import measured
import torch
from torch import nn

trunk = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU())
for weight in trunk.parameters():
    weight.requires_grad = False
model = nn.Sequential(trunk, nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])


def loss_of(net, x, y):
    return nn.functional.cross_entropy(net(x), y)


measured.train(model, optimizer, lambda: (torch.randn(2048, 256), torch.randint(10, (2048,))), loss_of)
