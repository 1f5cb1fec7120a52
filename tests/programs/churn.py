"""Many blocks of random sizes, with the peak near the beginning; prints what it counted. churn.py BLOCKS [PAUSE_EVERY]"""
import json
import random
import sys
import time

from light import Block

random.seed(3)
blocks, pause_every = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
kept, live, peak, total = [], 0, 0, 0
for number in range(blocks):
    size = 1000 + random.randrange(5000)
    kept.append((Block(size), size))
    live, total = live + size, total + size
    peak = max(peak, live)
    while len(kept) > (3000 if number < 5000 else 300):
        block, size = kept.pop(random.randrange(len(kept)))
        live -= size
        del block
    if pause_every and number % pause_every == 0:
        time.sleep(0.5)
print(json.dumps({"peak": peak, "total": total, "allocs": blocks, "frees": blocks - len(kept)}), flush=True)
