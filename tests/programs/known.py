"""Allocates and frees tensors at random, keeps its own books, and prints them: sizes, addresses, lines, the peak."""
import collections
import json
import random
import sys

import torch

random.seed(20260726)
live = {}  # number -> (tensor, size, line)
live_bytes = peak_bytes = 0
peak_number = None
holders = {}
books = []


def first(size):
    return torch.empty(size, dtype=torch.uint8), sys._getframe().f_lineno


def second(size):
    return torch.zeros(size, dtype=torch.uint8), sys._getframe().f_lineno


def third(size):
    t, line = torch.ones(size // 4, dtype=torch.float32), sys._getframe().f_lineno
    return t, line


def fourth(size):
    return live[min(live)][0].new_empty(size), sys._getframe().f_lineno


def note(number, tensor, line):
    global live_bytes, peak_bytes, peak_number, holders
    size = tensor.untyped_storage().nbytes()
    live[number] = (tensor, size, line)
    books.append({"size": size, "line": line, "address": tensor.data_ptr()})
    live_bytes += size
    if live_bytes > peak_bytes:
        peak_bytes, peak_number = live_bytes, number
        holders = collections.defaultdict(lambda: [0, 0])
        for _, held, at in live.values():
            holders[at][0] += held
            holders[at][1] += 1


def drop(number):
    global live_bytes
    tensor, size, _ = live.pop(number)
    books.append({"free": tensor.data_ptr()})
    live_bytes -= size


note(0, *first(12_345))
kept = None
for number in range(1, 3_000):
    size = 1_000 + 4 * number + random.choice([0, 0, 100_000, 1_000_000])
    kept = random.choice([first, second, third] + [fourth] * (live[0][0].dtype == torch.uint8))(size)
    note(number, *kept)
    kept = None
    while len(live) > 1 and random.random() < 0.49:
        drop(random.choice([n for n in live if n]))

empty = torch.empty(0, dtype=torch.uint8)  # no memory, so no event
view = live[0][0][5:10]  # no memory of its own
print(json.dumps({"books": books, "peak_bytes": peak_bytes, "peak_number": peak_number, "end_bytes": live_bytes,
                  "holders": {str(line): held for line, held in holders.items()}}))
