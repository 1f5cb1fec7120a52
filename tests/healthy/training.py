"""Trainings in one process: name → text."""

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional\n\ntorch.manual_seed(0)\n"
MLP = HEAD + "m = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))\n"
STEP = "    o.zero_grad()\n    functional.mse_loss(m(torch.randn(16, 64)), torch.randn(16, 8)).backward()\n    o.step()\n"

PROGRAMS = {
    "six steps": MLP + "o = torch.optim.Adam(m.parameters())\nfor _ in range(6):\n" + STEP,
    "two hundred steps, the loss printed": MLP + """
o = torch.optim.AdamW(m.parameters())
for i in range(200):
    loss = functional.mse_loss(m(torch.randn(16, 64)), torch.randn(16, 8))
    loss.backward()
    o.step()
    o.zero_grad()
    if i % 50 == 0:
        print(loss.item())
""",
    "a network of convolutions": HEAD + """
m = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10))
o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
for _ in range(12):
    o.zero_grad()
    functional.cross_entropy(m(torch.randn(8, 3, 32, 32)), torch.randint(0, 10, (8,))).backward()
    o.step()
""",
    "a recurrent language model": HEAD + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.rnn, self.head = nn.Embedding(100, 32), nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 100)

    def forward(self, x, state=None):
        y, state = self.rnn(self.words(x), state)
        return self.head(y), state


m = Model()
o = torch.optim.Adam(m.parameters())
state = None
for _ in range(15):
    x = torch.randint(0, 100, (4, 21))
    y, state = m(x[:, :-1], state)
    state = tuple(s.detach() for s in state)
    o.zero_grad()
    functional.cross_entropy(y.flatten(0, 1), x[:, 1:].flatten()).backward()
    o.step()
""",
    "two networks against each other": HEAD + """
g, d = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32)), nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
for _ in range(10):
    od.zero_grad()
    (d(g(torch.randn(16, 8)).detach()).mean() - d(torch.randn(16, 32)).mean()).backward()
    od.step()
    og.zero_grad()
    (-d(g(torch.randn(16, 8))).mean()).backward()
    og.step()
""",
    "gradients of four batches": MLP + """
o = torch.optim.Adam(m.parameters())
for i in range(24):
    (functional.mse_loss(m(torch.randn(16, 64)), torch.randn(16, 8)) / 4).backward()
    if i % 4 == 3:
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()
""",
    "half precision and checkpoints": HEAD + """
from torch.utils.checkpoint import checkpoint

m = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4))
o = torch.optim.AdamW(m.parameters())
for _ in range(10):
    with torch.autocast("cpu", torch.bfloat16):
        x = torch.randn(16, 64)
        for block in m:
            x = x + checkpoint(block, x, use_reentrant=False)
    x.float().square().mean().backward()
    o.step()
    o.zero_grad()
""",
    "a validation after each epoch, the best weights kept": MLP + """
import copy

o = torch.optim.Adam(m.parameters())
best, best_loss = None, float("inf")
for epoch in range(5):
    m.train()
    for _ in range(8):
""" + STEP.replace("    ", "        ") + """
    m.eval()
    with torch.no_grad():
        outputs = [m(torch.randn(16, 64)) for _ in range(6)]
        loss = torch.cat(outputs).square().mean().item()
    if loss < best_loss:
        best, best_loss = copy.deepcopy(m.state_dict()), loss
print(best_loss)
""",
    "a large validation after each epoch": MLP + """
o = torch.optim.Adam(m.parameters())
for epoch in range(4):
    for _ in range(12):
""" + STEP.replace("    ", "        ") + """
    with torch.no_grad():
        m(torch.randn(4096, 64)).mean().item()
""",
    "predictions of an epoch that is left in the middle": MLP + """
o = torch.optim.Adam(m.parameters())
for epoch in range(3):
    predictions = []
    for i in range(40):
        o.zero_grad()
        y = m(torch.randn(16, 64))
        y.square().mean().backward()
        o.step()
        predictions.append(y.detach())
        if epoch == 2 and i == 35:
            raise SystemExit(0)
    print(torch.cat(predictions).mean().item())
""",
    "a memory of the last experiences": HEAD + """
import collections
import random

m = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
o = torch.optim.Adam(m.parameters())
memory = collections.deque(maxlen=50)
for _ in range(200):
    memory.append((torch.randn(8), torch.randn(1)))
    if len(memory) >= 16:
        x, y = zip(*random.sample(list(memory), 16))
        o.zero_grad()
        (m(torch.stack(x)).max(1).values - torch.cat(y)).square().mean().backward()
        o.step()
""",
    "weights averaged over time": MLP + """
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

o = torch.optim.Adam(m.parameters())
s = torch.optim.lr_scheduler.CosineAnnealingLR(o, 20)
mean = AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.9))
for _ in range(20):
""" + STEP + "    s.step()\n    mean.update_parameters(m)\n",
    "an optimizer with a closure": MLP + """
o = torch.optim.LBFGS(m.parameters(), max_iter=4)
x, y = torch.randn(16, 64), torch.randn(16, 8)


def closure():
    o.zero_grad()
    loss = functional.mse_loss(m(x), y)
    loss.backward()
    return loss


for _ in range(5):
    o.step(closure)
""",
    "weights saved and loaded": MLP + """
import os
import tempfile

o = torch.optim.Adam(m.parameters())
for _ in range(5):
""" + STEP + """
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "weights.pt")
    torch.save({"model": m.state_dict(), "optimizer": o.state_dict()}, path)
    saved = torch.load(path)
m.load_state_dict(saved["model"])
o.load_state_dict(saved["optimizer"])
del saved
for _ in range(5):
""" + STEP,
    "a data set in memory, trained on and evaluated": MLP + """
data = [(torch.randn(64), torch.randn(8)) for _ in range(400)]
o = torch.optim.Adam(m.parameters())
for x, y in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
    o.zero_grad()
    functional.mse_loss(m(x), y).backward()
    o.step()
with torch.no_grad():
    print(sum(functional.mse_loss(m(x), y).item() for x, y in data))
""",
    "a model for inference alone": MLP + "m.eval()\nwith torch.inference_mode():\n    for _ in range(100):\n        m(torch.randn(32, 64)).argmax(1)\n",
    "a compiled step": MLP + """
o = torch.optim.Adam(m.parameters())
step = torch.compile(lambda x, y: functional.mse_loss(m(x), y), backend="aot_eager")
for _ in range(10):
    o.zero_grad()
    step(torch.randn(16, 64), torch.randn(16, 8)).backward()
    o.step()
""",
}  # fmt: skip
