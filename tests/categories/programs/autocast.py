"""Forward in bfloat16, parameters in float32."""

import functools

import measured
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.AdamW(model.parameters())


def loss_of(net, x, y):
    return nn.functional.cross_entropy(net(x), y)


batch = functools.partial(torch.randn, 2048, 256)
half = functools.partial(torch.autocast, "cpu", torch.bfloat16)
measured.train(model, optimizer, lambda: (batch(), torch.randint(10, (2048,))), loss_of, 4, 1, half)
