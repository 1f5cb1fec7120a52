import os

import torch

torch.manual_seed(0)


NAME = "others" if os.environ.get("GPUMEMPROF_TRY") else "blocks"


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(128, 512), torch.nn.Linear(512, 128)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module(NAME, torch.nn.ModuleList(Block() for _ in range(6)))

    def forward(self, x):
        for block in self.get_submodule(NAME):
            x = block(x)
        return x


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(512, 128)).square().mean().backward()
    optimizer.step()
