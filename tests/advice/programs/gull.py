import os
import tempfile

import torch

torch.manual_seed(0)


def make():
    return torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6)))


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "weights.pt")
    torch.save(make().state_dict(), path)
    weights = torch.load(path, map_location="cpu")
model = make()
model.load_state_dict(weights)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 512)).square().mean().backward()
    optimizer.step()
