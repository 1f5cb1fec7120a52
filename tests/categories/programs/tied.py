"""One weight for the words that go in and those that come out."""

import measured
import torch
from torch import nn


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(2000, 128)
        self.mix = nn.Sequential(nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.out = nn.Linear(128, 2000, bias=False)
        self.out.weight = self.words.weight

    def forward(self, tokens):
        return self.out(self.mix(self.words(tokens)))


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


model = Language()
optimizer = torch.optim.Adam(model.parameters())
measured.train(model, optimizer, lambda: (torch.randint(2000, (512,)), torch.randint(2000, (512,))), loss_of)
