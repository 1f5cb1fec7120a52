"""Recursions of several depths around the limit."""

import json
import sys

import torch
from witness import allocate, expected

sys.setrecursionlimit(5000)


def down(levels, size):
    if levels > 0:
        return down(levels - 1, size)
    return allocate(size)


def down_c(levels, size):
    """With C between the frames, so that Python calls itself through the C stack."""
    if levels > 0:
        return sorted([levels], key=lambda n: down_c(n - 1, size))
    return allocate(size)


assert torch.__version__
said = {}
for i, levels in enumerate((0, 50, 124, 125, 126, 127, 128, 200, 1000, 3000)):
    down(levels, 400_003 + i)
    said[str(levels)] = [400_003 + i, expected[400_003 + i]]
down_c(40, 401_003)
said["through C"] = [401_003, expected[401_003]]
json.dump(said, sys.stdout)
