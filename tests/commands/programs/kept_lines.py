"""Keeps the graph of an evaluation in one list, and a copy of each batch in another. Sizes are powers of two."""
import sys

import torch
from torch import nn

torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, batch):
        wide = self.up(batch)  # up: 8 × 1024 floats
        bent = wide.tanh()  # bend: the same
        return self.down(bent)  # down: 8 × 256 floats


def main(steps):
    model = nn.Sequential(Block(), Block())
    outputs, copies = [], []
    for _ in range(steps):
        batch = torch.ones(8, 256)  # batch
        outputs.append(model(batch))
        copies.append(batch.sum(1).expand(64, 8).clone())  # copy: 64 × 8 floats


main(int(sys.argv[1]))
