import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.keys = torch.nn.Linear(64, 64)
        self.pages = []
        self.used = 0

    def forward(self, x):
        if self.used % 16 == 0:
            self.pages.append(torch.empty(64, 16, 64))
        self.pages[-1][:, self.used % 16] = self.keys(x)
        self.used += 1
        return x + torch.stack([page.mean(1) for page in self.pages]).mean(0)


torch.manual_seed(0)
model = torch.nn.Sequential(*[Attention() for _ in range(4)]).eval()
x = torch.randn(64, 64)
with torch.inference_mode():
    for _ in range(160):
        x = model(x)
print(x.shape)
