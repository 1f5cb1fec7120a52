"""A deep net with normalisation, SGD with momentum."""

import measured
import torch
from torch import nn

layers = []
for depth in range(6):
    layers += [nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU()]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def loss_of(net, x, y):
    return ((net(x) - y) ** 2).mean()


measured.train(model, optimizer, lambda: (torch.randn(512, 256), torch.randn(512, 256)), loss_of)
