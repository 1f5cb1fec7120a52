import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(100000, 32)
        self.head = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.words(x).mean(1))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randint(100000, (32, 16))).square().mean().backward()
    optimizer.step()
