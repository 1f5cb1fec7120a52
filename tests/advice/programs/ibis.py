import torch


class Large(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(p for _ in range(5) for p in (torch.nn.Linear(512, 512), torch.nn.Tanh())))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
large = Large()
small = torch.nn.Sequential(torch.nn.Linear(512, 64), torch.nn.Tanh(), torch.nn.Linear(64, 512))
optimizer = torch.optim.Adam(small.parameters())
for _ in range(8):
    batch = torch.randn(64, 512)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(small(batch), large(batch)).backward()
    optimizer.step()
