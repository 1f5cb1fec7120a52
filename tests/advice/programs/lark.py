import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(part for _ in range(8) for part in (torch.nn.Linear(128, 128), torch.nn.Tanh())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(8):
    optimizer.zero_grad()
    loss = model(torch.randn(1024, 128)).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
