import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.Tanh(), torch.nn.Linear(1024, 512))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(64, 512)).square().mean().backward()
    optimizer.step()
with torch.no_grad():
    for _ in range(4):
        model(torch.randn(256, 512))
