import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6)))
optimizer = torch.optim.Adam(model.parameters(), foreach=True)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 512)).square().mean().backward()
    optimizer.step()
