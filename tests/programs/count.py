"""Prints n once tensor n of 4,096+n bytes is there; keeps them all. count.py torch|light LIMIT THREADS

The first line is the PID. A thread t of T counts t, t+T, t+2T, ...
"""
import os
import sys
import threading

LIMIT, THREADS = int(sys.argv[2]), int(sys.argv[3])

if sys.argv[1] == "torch":
    import torch

    def make(size):
        return torch.empty(size, dtype=torch.uint8)
else:
    from light import Block as make


def count(first):
    kept = []
    for n in range(first, LIMIT, THREADS):
        kept.append(make(4096 + n))
        os.write(1, b"%d\n" % n)
    everything.append(kept)


everything = []
os.write(1, b"%d\n" % os.getpid())
threads = [threading.Thread(target=count, args=(t,)) for t in range(1, THREADS)]
for thread in threads:
    thread.start()
count(0)
for thread in threads:
    thread.join()
os._exit(0)
