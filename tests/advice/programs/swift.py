import torch

torch.manual_seed(0)
samples = torch.randn(20000, 256)
targets = torch.randn(20000, 1)
model = torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for at in range(0, 640, 64):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(samples[at : at + 64]), targets[at : at + 64]).backward()
    optimizer.step()
