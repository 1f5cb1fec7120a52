"""Threads that allocate and free at the same time. at_once.py THREADS BLOCKS prints bounds of what was held at one moment:
a block counts to `least` from after its allocation to before its free, to `most` from before the one to after the other."""
import json
import random
import sys
import threading

from light import Block

lock, held = threading.Lock(), {"least": [0, 0], "most": [0, 0]}  # now, peak


def add(which, size):
    with lock:
        now = held[which]
        now[0] += size
        now[1] = max(now)


def work(seed, blocks):
    numbers, kept = random.Random(seed), []
    for _ in range(blocks):
        size = 1000 + numbers.randrange(9000)
        add("most", size)
        kept.append((Block(size), size))
        add("least", size)
        while len(kept) > 50:
            block, size = kept.pop(numbers.randrange(50))
            add("least", -size)
            del block
            add("most", -size)
    while kept:
        block, size = kept.pop()
        add("least", -size)
        del block
        add("most", -size)


threads = [threading.Thread(target=work, args=(seed, int(sys.argv[2]))) for seed in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({which: peak for which, (_, peak) in held.items()}), flush=True)
