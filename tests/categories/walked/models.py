"""The small models that the walked programs train."""

import torch
from torch import nn


class Net(nn.Module):
    """Parameters and buffers, two layers."""

    def __init__(self, width=32):
        super().__init__()
        self.lower = nn.Linear(width, 2 * width)
        self.norm = nn.BatchNorm1d(2 * width)
        self.upper = nn.Linear(2 * width, width)

    def forward(self, data):
        return self.upper(torch.relu(self.norm(self.lower(data))))


class Plain(nn.Module):
    """No buffers."""

    def __init__(self, width=32, inner=64):
        super().__init__()
        self.lower = nn.Linear(width, inner)
        self.upper = nn.Linear(inner, width)

    def forward(self, data):
        return self.upper(torch.relu(self.lower(data)))


class Tokens(nn.Module):
    """A small language model whose head is its embedding."""

    def __init__(self, words=100, width=32):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layer = nn.Linear(width, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(torch.relu(self.layer(self.embedding(ids))))


def adam(model, **options):
    return torch.optim.Adam(model.parameters(), **options)
