"""A recurrent net."""

import measured
import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(64, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, 64)

    def forward(self, x):
        states, _ = self.cells(x)
        return self.head(states)


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).mean()


model = Recurrent()
optimizer = torch.optim.Adam(model.parameters())
measured.train(model, optimizer, lambda: (torch.randn(32, 24, 64), torch.randn(32, 24, 64)), loss_of)
