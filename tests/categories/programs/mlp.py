"""Linear layers and plain SGD."""

import measured
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(256, 512)
        self.middle = nn.Linear(512, 512)
        self.last = nn.Linear(512, 10)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        hidden = torch.tanh(self.middle(hidden))
        return self.last(hidden)


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


network = Network()
descent = torch.optim.SGD(network.parameters(), lr=0.01)
measured.train(network, descent, lambda: (torch.randn(1024, 256), torch.randint(10, (1024,))), loss_of)
