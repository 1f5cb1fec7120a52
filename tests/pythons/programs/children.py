"""A parent, a forked child that leaves with os._exit, and a child that is another Python."""

import json
import os
import subprocess
import sys

import torch

kept = [torch.empty(500_003, dtype=torch.uint8)]
child = os.fork()
if child == 0:
    kept.append(torch.empty(500_005, dtype=torch.uint8))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
other = "import torch; t = torch.empty(500_007, dtype=torch.uint8)"
subprocess.run([sys.executable, "-c", other], check=True)
json.dump({"sizes": [500_003, 500_005, 500_007]}, sys.stdout)
