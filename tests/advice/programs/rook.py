import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(128, 512), torch.nn.Linear(512, 128)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


blocks = torch.nn.ModuleList(Block() for _ in range(6))
optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01, momentum=0.9)
for _ in range(6):
    x = torch.randn(256, 128)
    optimizer.zero_grad()
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    x.square().mean().backward()
    optimizer.step()
    del x
