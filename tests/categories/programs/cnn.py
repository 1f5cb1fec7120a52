"""Convolutions with batch normalisation, pooling and dropout, RMSprop."""

import measured
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, more):
        super().__init__()
        self.filter = nn.Conv2d(channels, more, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(more)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(torch.relu(self.norm(self.filter(x))))


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


model = nn.Sequential(Block(3, 16), Block(16, 32), nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 64, 10))
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001)
measured.train(model, optimizer, lambda: (torch.randn(64, 3, 32, 32), torch.randint(10, (64,))), loss_of)
