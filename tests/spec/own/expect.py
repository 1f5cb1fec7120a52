"""What the examples share: the basis that their figures must have (the first argument), and a small model."""

import sys

import torch

basis = sys.argv[1]
device = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 1 << 20


def exactly(value, expected):
    """Bytes by arithmetic, where figures are exact and the allocator does not round them."""
    if basis == "exact" and device == "cpu":
        assert value == expected, f"{value} bytes, not {expected}"


def touched(mebibytes):
    """A tensor of so many MiB whose memory is written."""
    return torch.ones(mebibytes * MIB // 4, device=device)


def model_and_batch():
    features = torch.randn(5, 20, device=device)
    return torch.nn.Linear(20, 8, device=device), features, torch.randint(8, (5,), device=device)


def loss_of(model, features, labels):
    loss = torch.nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    return loss
