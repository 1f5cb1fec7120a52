"""Small training loops: MODEL BATCH. As people write them; nothing of the tracer is known here."""

import sys

import torch
from torch import nn

name, batch = sys.argv[1], int(sys.argv[2])
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(32, 100)
        self.head.weight = self.embedding.weight  # tied

    def forward(self, x):
        return self.head(self.block(self.embedding(x)).mean(1))


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 1),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(16, 10),
    )


def images():
    return torch.randn(batch, 3, 16, 16), torch.randint(0, 10, (batch,))


MODELS = {
    "convolutions": (convolutions, images, torch.optim.AdamW, {"lr": 1e-3}),
    "attention": (
        Attention,
        lambda: (torch.randint(0, 100, (batch, 12)), torch.randint(0, 100, (batch,))),
        torch.optim.Adam,
        {"lr": 1e-3},
    ),
    "recurrent": (
        lambda: nn.Sequential(nn.Flatten(2), Last(), nn.Linear(20, 10)),
        images,
        torch.optim.RMSprop,
        {"lr": 1e-3},
    ),
}


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(256, 20)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 20)
        for i in range(x.shape[1]):
            state = self.cell(x[:, i], state)
        return state


make, data, optimizer_class, options = MODELS[name]
model = make()
optimizer = optimizer_class(model.parameters(), **options)  # before the model moves, as it is allowed
model = model.to(device)
model.train()
for step in range(5):
    x, y = data()
    x, y = x.to(device, non_blocking=True), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print("step", step, loss.item())
raise SystemExit("not stopped after two steps")
