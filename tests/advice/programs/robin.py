import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(part for _ in range(3) for part in (torch.nn.Linear(256, 256), torch.nn.Tanh())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train():
    optimizer.zero_grad()
    model(torch.randn(64, 256)).square().mean().backward()
    optimizer.step()


def evaluate():
    return model(torch.randn(2048, 256)).square().mean().item()


for _ in range(6):
    train()
    evaluate()
