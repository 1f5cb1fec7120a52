"""Loaders with workers, pools and other children: name → text."""

from healthy.training import HEAD, MLP, STEP

ITEMS = HEAD + """
import multiprocessing
from torch.utils import data


class Items(data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.randn(64) * 2 - 1, torch.tensor([index])


class Stream(data.IterableDataset):
    def __iter__(self):
        for index in range(96):
            yield torch.full((64,), float(index))


def as_it_is(items):
    return items


def main():
    m = nn.Linear(64, 8)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    for epoch in range(%d):
        for x, _ in data.DataLoader(Items(), %s):
            o.zero_grad()
            m(x).square().mean().backward()
            o.step()%s


if __name__ == "__main__":
    main()
"""
ALONE = ITEMS.split("def main")[0] + 'def main():\n    %s\n\n\nif __name__ == "__main__":\n    main()\n'
SUM = "for batch in data.DataLoader(%s):\n        batch[0].sum().item()"
POOL = """
import multiprocessing
from concurrent import futures

import torch


def simulate(seed):
    state = torch.full((50,), float(seed))
    states = []
    for _ in range(30):
        state = state * 0.9 + torch.randn(50)
        states.append(state)
    return sum(s.sum().item() for s in states)


def describe(seed):
    return torch.full((100,), float(seed))


def main():
    %s


if __name__ == "__main__":
    main()
"""

PROGRAMS = {
    "a loader with two workers": ITEMS % (2, "batch_size=8, shuffle=True, num_workers=2", ""),
    "a loader that is left in the middle": ITEMS % (2, "batch_size=8, num_workers=2", "\n            if x.sum() != 0:\n                break"),
    "workers for all epochs": ALONE % (
        "loader = data.DataLoader(Items(), batch_size=8, num_workers=2, persistent_workers=True)\n"
        "    for _ in range(3):\n        for x, _ in loader:\n            x.sum().item()"),
    "one batch for each worker": ITEMS % (1, "batch_size=48, num_workers=2", ""),
    "items one by one": ALONE % SUM % "Items(), batch_size=None, num_workers=2",
    "items that nothing joins": ALONE % SUM.replace("[0]", "[0][0]") % "Items(), batch_size=16, num_workers=2, collate_fn=as_it_is",
    "a stream of items": ALONE % SUM % "Stream(), batch_size=16, num_workers=1",
    "batches of many lengths": ALONE % SUM % (
        "Items(), num_workers=2, batch_sampler=[list(range(n)) for n in (3, 20, 9, 30, 14, 25, 6, 28, 11, 17)]"),
    "workers that begin anew": ITEMS % (1, 'batch_size=16, num_workers=2, multiprocessing_context="spawn"', ""),
    "a pool that is terminated": POOL % 'with multiprocessing.get_context("fork").Pool(2) as pool:\n        print(sum(pool.map(simulate, range(10))))',
    "a pool with one task for each": POOL % 'with multiprocessing.get_context("fork").Pool(2) as pool:\n        print(pool.map(simulate, range(2)))',
    "a pool that is left in the middle": POOL % (
        'with multiprocessing.get_context("fork").Pool(2) as pool:\n'
        "        for number in pool.imap_unordered(simulate, range(40)):\n            if number != 0:\n                break"),
    "a pool that is closed, with tensors": POOL % (
        'pool = multiprocessing.get_context("fork").Pool(2)\n    print(sum(t.sum().item() for t in pool.map(describe, range(40))))\n'
        "    pool.close()\n    pool.join()"),
    "an executor of processes": POOL % (
        'with futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:\n        print(sum(pool.map(simulate, range(10))))'),
    "an executor of threads": POOL % "with futures.ThreadPoolExecutor(4) as pool:\n        print(sum(pool.map(simulate, range(20))))",
    "a child that loads and tells what it has": POOL % (
        'queue = multiprocessing.get_context("fork").SimpleQueue()\n'
        "    child = multiprocessing.get_context('fork').Process(target=load, args=(queue,))\n    child.start()\n"
        "    print(queue.get())\n    child.join()") + "",
    "a child by fork that ends at once": HEAD + """
import os

x = torch.randn(1000)
if (pid := os.fork()) == 0:
    torch.randn(500).sum()
    os._exit(0)
os.waitpid(pid, 0)
""",
    "a program of another kind": MLP + "import subprocess\n\nsubprocess.run(['ls', '/'], check=True, capture_output=True)\n"
                                       "o = torch.optim.Adam(m.parameters())\nfor _ in range(6):\n" + STEP,
}  # fmt: skip
LOAD = """
def load(queue):
    data = [torch.randn(100) for _ in range(60)]
    queue.put(sum(len(x) for x in data))
"""
PROGRAMS["a child that loads and tells what it has"] = PROGRAMS["a child that loads and tells what it has"].replace(
    "\n\ndef describe", "\n" + LOAD + "\n\ndef describe")
