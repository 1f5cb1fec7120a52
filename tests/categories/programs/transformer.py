"""An encoder of PyTorch's own with an embedding, AdamW."""

import measured
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(1000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3)
        self.head = nn.Linear(128, 1000)

    def forward(self, tokens):
        return self.head(self.encoder(self.words(tokens)))


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


model = Reader()
optimizer = torch.optim.AdamW(model.parameters())
measured.train(model, optimizer, lambda: (torch.randint(1000, (16, 64)), torch.randint(1000, (16, 64))), loss_of)
