"""DataLoader workers by fork and by spawn, new ones every epoch. loader.py LOG; sizes are logged as in processes.py."""
import json
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

BASE = 100_000


class Sizes(Dataset):
    def __init__(self, log, base):
        self.log, self.base = log, base

    def __len__(self):
        return 12

    def __getitem__(self, index):
        size = self.base + index
        item = torch.zeros(size, dtype=torch.uint8)
        with open(self.log, "a") as log:
            log.write(json.dumps({"pid": os.getpid(), "who": "worker", "sizes": [size]}) + "\n")
        return item


def first(items):
    return items[0]


def main(log):
    for number, method in enumerate(["fork", "spawn"]):
        loader = DataLoader(Sizes(log, BASE * (number + 1)), num_workers=2, collate_fn=first, multiprocessing_context=method)
        for epoch in range(2 if method == "fork" else 1):
            loader.dataset.base += 1000
            assert sorted(len(t) - loader.dataset.base for t in loader) == list(range(12))
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
