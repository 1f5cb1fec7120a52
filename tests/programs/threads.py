"""Threads that allocate sizes of their own. threads.py TOTAL ALIVE EACH: TOTAL threads, ALIVE at a time, EACH sizes each.

Prints the largest size that this process's own .gmp file had while the threads came and went (argv[4]: its folder).
"""
import glob
import os
import sys
import threading

from light import allocate, release

total, alive, each = map(int, sys.argv[1:4])
barrier_sizes = []


def work(number, barrier):
    barrier.wait()  # all of a group are alive at once
    for i in range(each):
        block = allocate(10_000 + number * each + i)
        if i % 2:
            release(block)
    barrier.wait()


largest = 0
for first in range(0, total, alive):
    group = range(first, min(first + alive, total))
    barrier = threading.Barrier(len(group))
    threads = [threading.Thread(target=work, args=(n, barrier), name=f"worker {n}") for n in group]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for path in glob.glob(f"{sys.argv[4]}/*.{os.getpid()}.*gmp"):
        largest = max(largest, os.stat(path).st_size)
print(largest)
