"""Trains a small transformer under torch.profiler and writes PyTorch's own memory events: argv[1] is their file.

Two tensors of known sizes mark the window, so that both records are cut at the same events.
"""
import sys

import torch
from torch import nn

BEGIN_BYTES, END_BYTES = 1_234_567, 1_234_569


def marker(size):
    return torch.empty(size, dtype=torch.uint8)


class Model(nn.Module):
    def __init__(self, words=500, width=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.out = nn.Linear(width, words)

    def forward(self, tokens):
        return self.out(self.encoder(self.embed(tokens)))


def train(steps):
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for number in range(steps):
        tokens = torch.randint(500, (8, 32))
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(number, loss.item().hex())


# Everything is inside: of a block that was allocated before it began, the profiler would not know the size.
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, with_stack=True) as profiler:
    marker(BEGIN_BYTES)
    train(6)
    marker(END_BYTES)
profiler.export_chrome_trace(sys.argv[1])
