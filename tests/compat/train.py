"""What the recordings of releases in this folder recorded: a training with a leak, and a child process.

To record those of a release: gpumemprof run -o RELEASE --explain-leaks -- python train.py, in an environment and on a host whose
names may be public.
"""

import subprocess
import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)  # one thread allocates: the peak is exact
if sys.argv[1:] == ["child"]:
    kept = torch.zeros(1000, 100)
    sys.exit()

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())
history = []
for _ in range(24):
    loss = model(torch.randn(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    history.append(model(torch.randn(32, 64)))
subprocess.run([sys.executable, sys.argv[0], "child"], check=True)
