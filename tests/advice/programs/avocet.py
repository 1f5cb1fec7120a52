import sys

import torch


class Judge(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(p for _ in range(4) for p in (torch.nn.Linear(512, 512), torch.nn.Tanh())))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
judge = Judge()
if sys.argv[1:] == ["frozen"]:
    judge.requires_grad_(False)
painter = torch.nn.Sequential(torch.nn.Linear(512, 64), torch.nn.Tanh(), torch.nn.Linear(64, 512))
optimizer = torch.optim.Adam(painter.parameters())
for _ in range(4):
    batch = torch.randn(2048, 512)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(judge(painter(batch)), judge(batch)).backward()
    optimizer.step()
