"""One operation between a parameter and a loss, twice: NAME. As people write it, with nothing of the tracer."""

import sys

import torch
from torch import nn
from torch.nn import functional

BATCH, HEADS, TOKENS, WIDTH = 2, 4, 48, 16
weight = nn.Parameter(torch.ones(BATCH, HEADS, TOKENS, WIDTH, device="cuda"))
table = nn.Parameter(torch.ones(TOKENS, TOKENS, HEADS, device="cuda"))
layer = nn.Linear(96, 640, device="cuda")
head = nn.Linear(1, 1, device="cuda")
convolve = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.Conv2d(32, 64, 1, bias=False)).cuda()


def attention(bias=None, dtype=torch.float32, **more):
    x = weight.to(dtype)
    return functional.scaled_dot_product_attention(x, x, x, bias, **more).sum()


def mask():
    made = torch.ones(BATCH, TOKENS, device="cuda")
    allowed = made.to(torch.bool)[:, None, None, :]
    if allowed.all():
        return attention(is_causal=True)
    return attention(functional.pad(allowed, (0, 0)).expand(BATCH, 1, TOKENS, TOKENS))


def cut_mask():
    made = torch.ones(BATCH, TOKENS, device="cuda")
    made[:, 3:] = 0
    return head(made.sum().reshape(1)).sum() + (weight.exp().sum() if made.all() else weight.sum())


def met():
    twice = weight * 2
    return twice.exp().sum() + twice.sin().sum()


def lowered():
    with torch.autocast("cuda", torch.bfloat16):
        return layer(torch.ones(3, 96, device="cuda")).sum()


def convolution():
    return convolve(torch.ones(8, 16, 32, 32, device="cuda")).sum()


LOSSES = {
    "met": met,
    "lowered": lowered,
    "convolution": convolution,
    "dropout": lambda: nn.Dropout(0.5)(weight * 2).sum(),
    "attention": attention,
    "bias": lambda: attention(table.permute(2, 0, 1).contiguous()[None]),
    "strided bias": lambda: attention(table.permute(2, 0, 1)[None]),
    "half": lambda: attention(dtype=torch.bfloat16),
    "mask": mask,
    "cut mask": cut_mask,
    "rows": lambda: layer(torch.zeros(16384, 96, device="cuda")).square().sum(),
}

optimizer = torch.optim.SGD([weight, table, *layer.parameters(), *head.parameters(), *convolve.parameters()], lr=0.1)
for _ in range(2):
    LOSSES[sys.argv[1]]().backward()
    optimizer.step()
    optimizer.zero_grad()
