"""1,000 functions with a file and a line of their own; code objects die, so their addresses come back."""

import json
import sys

import torch

kept = []
said = []
for i in range(1000):
    file = f"generated_{i}.py"
    source = "\n" * i + f"def f(): return torch.empty({100_003 + i}, dtype=torch.uint8)"
    scope = {"torch": torch}
    exec(compile(source, file, "exec"), scope)
    kept.append(scope["f"]())
    said.append([100_003 + i, file, i + 1])
    del scope
json.dump(said, sys.stdout)
