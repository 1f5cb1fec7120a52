"""A training loop that keeps one known tensor in step 9 and needs much more memory in steps 4, 14, 24, ... of 40."""
import os

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
KEPT_BYTES, SPIKE_BYTES = 3_000_000, 20_000_000
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 128))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
kept = []


def train(number):
    x = torch.randn(512, 256)
    if number == 9:
        kept.append(torch.empty(KEPT_BYTES, dtype=torch.uint8))
    loss = model(x).square().mean()
    loss.backward()
    if number % 10 == 4:
        torch.empty(SPIKE_BYTES, dtype=torch.uint8)
    optimizer.step()
    optimizer.zero_grad()


for number in range(40):
    train(number)
os._exit(0)  # what is live now stays in the recording: the interpreter would free it
