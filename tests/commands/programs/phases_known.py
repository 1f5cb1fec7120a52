"""Three steps in two phases and a call without gradients in a third, of sizes that a test adds up; a phase's name needs quoting."""

import os
import time

import torch

import gpumemprof

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(256, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
for number in range(3):
    with gpumemprof.phase("warm-up" if number == 0 else "training <& more>"):
        data = torch.randn(64, 256)
        loss = model(data).square().mean()
        with gpumemprof.phase("forward is done"):
            time.sleep(0.01)
        loss.backward()
        time.sleep(0.01)
        optimizer.step()
        optimizer.zero_grad()
        del loss
        time.sleep(0.01)
with torch.no_grad(), gpumemprof.phase("evaluation"):
    result = model(data)
    time.sleep(0.01)
os._exit(0)  # what is live now stays in the recording: the interpreter would free it
