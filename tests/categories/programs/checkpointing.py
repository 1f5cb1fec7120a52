"""Each block's inside is computed again in backward."""

import measured
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(128, 256)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4)
        )
        self.end = nn.Linear(256, 10)

    def forward(self, x):
        x = self.start(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)
        return self.end(x)


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


model = Deep()
optimizer = torch.optim.Adam(model.parameters())
measured.train(model, optimizer, lambda: (torch.randn(1024, 128), torch.randint(10, (1024,))), loss_of)
