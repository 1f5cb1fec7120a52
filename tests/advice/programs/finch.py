import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.Tanh(), torch.nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []
for _ in range(60):
    batch = torch.randn(128, 128)
    optimizer.zero_grad()
    loss = (model(batch) - 1).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    history.append(loss)
print(sum(float(loss) for loss in history))
