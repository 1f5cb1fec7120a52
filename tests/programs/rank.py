"""One rank of a torchrun-style launch: allocates sizes of its own and logs them. rank.py LOG"""
import json
import os
import sys

import torch

rank = int(os.environ["RANK"])
sizes = [200_000 + 1000 * rank + i for i in range(50)]
kept = [torch.empty(size, dtype=torch.uint8) for size in sizes]
with open(sys.argv[1], "a") as log:
    log.write(json.dumps({"pid": os.getpid(), "who": f"rank {rank}", "sizes": sizes}) + "\n")
