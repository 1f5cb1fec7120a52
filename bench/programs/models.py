"""The two training steps that everything is measured on, each in one thread."""
import torch
from torch import nn


class SmallTransformer(nn.Module):
    def __init__(self, vocabulary=1000, width=128, heads=4, layers=4, length=32):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.layers(self.tokens(tokens) + self.places))


def transformer_step(seed=0, batch=4, length=32, vocabulary=1000, device="cpu"):
    """About 2,000 allocator events in some 23 ms."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = SmallTransformer(vocabulary=vocabulary, length=length).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    loss_of = nn.CrossEntropyLoss()
    inputs = torch.randint(0, vocabulary, (batch, length)).to(device)
    targets = torch.randint(0, vocabulary, (batch, length)).to(device)

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(inputs).view(-1, vocabulary), targets.view(-1))
        loss.backward()
        optimizer.step()

    return step


def mlp_step(seed=0):
    """26 allocator events in 100 to 150 µs: the worst case, where events come as thick as in any
    training. SGD is written out, because torch.optim alone takes longer than the rest."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    parameters = list(model.parameters())
    inputs = torch.randn(32, 32)

    def step():
        model(inputs).sum().backward()
        with torch.no_grad():
            for parameter in parameters:
                parameter.sub_(parameter.grad, alpha=1e-6)
                parameter.grad = None

    return step
