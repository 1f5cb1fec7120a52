import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
seen = []
for _ in range(60):
    batch = torch.randn(256, 256)
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    seen.append(batch)
