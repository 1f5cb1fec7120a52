import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
losses = []
for _ in range(10):
    for _ in range(4):
        loss = model(torch.randn(32, 256)).square().mean() / 4
        loss.backward()
        losses.append(loss.item())
    optimizer.step()
    optimizer.zero_grad()
