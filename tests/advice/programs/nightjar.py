import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(part for _ in range(4) for part in (torch.nn.Linear(768, 768), torch.nn.Tanh())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    optimizer.zero_grad(set_to_none=False)
    model(torch.randn(384, 768)).square().mean().backward()
    optimizer.step()
torch.empty(1 << 50)  # more than any machine has
