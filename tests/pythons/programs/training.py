"""A small training that every PyTorch from 1.7 on runs."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(20):
    batch, target = torch.randn(256, 512), torch.randint(16, (256,))
    loss = nn.functional.cross_entropy(model(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
