"""Short programs of which a detector of leaks once made things up, or said too little: name → text."""

from leaks.shapes.serving import LANGUAGE_MODEL
from leaks.shapes.text import HEAD, block

MODEL = "m = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))\n"
RESIDUAL = """
class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1),
                                  nn.BatchNorm2d(c))

    def forward(self, x):
        return functional.relu(self.body(x) + x)


m = nn.Sequential(nn.Conv2d(3, 16, 7), *[Block(16) for _ in range(%d)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
"""
LOADED = """
m = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
x = torch.randn(16, 32)
o = torch.optim.Adam(m.parameters())
m(x).mean().backward()
o.step()
state = copy.deepcopy(o.state_dict())
del o
m.zero_grad()
o = torch.optim.Adam(m.parameters())
o.load_state_dict(state)
del state
for _ in range(%d):
    m(x).mean().backward()
    o.step()
    o.zero_grad()
"""
TRAIN = "o = torch.optim.Adam(m.parameters())\nfor k in range(%d):\n    l = m(torch.randn(8, 64)).mean()\n    o.zero_grad()\n    l.backward()\n    o.step()\n"  # fmt: skip
EVALUATE = "with torch.no_grad():\n    for x in data:\n        m(x)\n"

SILENT = {
    "forty layers made and called once":
        "m = nn.Sequential(*[nn.Linear(256, 256) for _ in range(40)])\nm(torch.randn(1, 256))\n",
    "two hundred layers": "m = nn.Sequential(*[nn.Linear(64, 64) for _ in range(200)])\nm(torch.randn(2, 64))\n",
    "a deep network called once without gradients":
        RESIDUAL % 24 + "m.eval()\nwith torch.no_grad():\n    m(torch.randn(1, 3, 32, 32))\n",
    "one step of a deep network":
        RESIDUAL % 8 + "o = torch.optim.AdamW(m.parameters())\nm(torch.randn(2, 3, 32, 32)).square().mean().backward()\no.step()\n",
    "ten steps of a deep network":
        RESIDUAL % 8 + "o = torch.optim.AdamW(m.parameters())\nfor _ in range(10):\n"
        "    m(torch.randn(2, 3, 16, 16)).square().mean().backward()\n    o.step()\n    o.zero_grad()\n",
    "a data set in a list": "data = [torch.randn(100, 64) for _ in range(300)]\n",
    "a data set in a list, evaluated": MODEL + "data = [torch.randn(100, 64) for _ in range(300)]\n" + EVALUATE,
    "a data set made item by item, evaluated":
        MODEL + "data = []\nfor _ in range(300):\n    data.append(torch.rand(10, 64) * 2 - 1)\n" + EVALUATE,
    "two thousand vectors in a dictionary":
        "d = {f'w{i}': torch.randn(50) for i in range(2000)}\nq = torch.stack(list(d.values()))\nprint((q @ q[0]).argmax())\n",
    "a hundred shards":
        "s = {f'w{i}': torch.randn(200, 200) for i in range(100)}\nm = nn.ParameterDict({k: nn.Parameter(v) for k, v in s.items()})\n",
    "features gathered and joined":
        MODEL + "out = []\nfor i in range(300):\n    with torch.no_grad():\n        out.append(m(torch.randn(10, 64)))\nr = torch.cat(out)\n",
    "targets gathered beside their inputs, and joined":
        MODEL + "kept = []\nfor i in range(300):\n    with torch.no_grad():\n"
        "        x, y = torch.randn(1000, 64), torch.randn(10)\n        m(x)\n        kept.append(y)\nr = torch.cat(kept)\n",
    "six steps after a loaded state": LOADED % 6,
    "thirty steps after a loaded state": LOADED % 30,
    "one text of 300 tokens":
        block(LANGUAGE_MODEL, words=100, h=32, depth=2) + "\n\nfrom tinylm import generate\n\n"
        "generate(Model().eval(), torch.zeros(1, 8, dtype=torch.int64), 300)\n",
    "a table that grows for a third, with steps":
        MODEL + "t = []\n" + TRAIN % 120 + "    if k < 40:\n        t.append(torch.randn(100))\n",
    "a table that grows for a third, without steps":
        MODEL + "t = []\nwith torch.no_grad():\n    for k in range(240):\n        if k < 80:\n            t.append(torch.randn(100))\n"
        "        m(torch.randn(8, 64)).sum()\n",
    "a table that is joined on one line for a third":
        "t = torch.zeros(0, 64)\nfor k in range(300):\n    t = torch.cat([t, torch.randn(1, 64)]) if k < 100 else t\n    t.mean(0)\n",
    "a table that is joined on one line and then used":
        "t = torch.zeros(0, 64)\nfor _ in range(300):\n    t = torch.cat([t, torch.randn(1, 64)])\nprint(t.norm().item())\n",
    "a text by functions alone":
        "e, w, t = torch.randn(50, 32), torch.randn(32, 50), torch.zeros(1, dtype=torch.int64)\nfor _ in range(200):\n"
        "    scores = e[t] @ w\n    t = torch.cat([t, scores[-1:].argmax(-1)])\n",
    "sizes one after the other":
        "w = torch.randn(64, 64)\nfor n in range(1, 200):\n    x = torch.randn(100 * n, 64)\n    y = x @ w\n",
    "sizes one after the other, and a product of one size":
        "for n in range(18, 2100, 18):\n    x = torch.randn(22, n)\n    print((x @ x.T).sum().item())\n",
    "sizes one after the other, and their sums":
        "for n in range(1, 200):\n    x = torch.randn(100 * n, 64)\n    y = x.sum(0)\n",
    "predictions of an evaluation after the training":
        MODEL + TRAIN % 60 + "kept = []\nwith torch.no_grad():\n    for _ in range(200):\n        kept.append(m(torch.randn(8, 64)))\n",
    "predictions of three evaluations, each given back":
        MODEL + "o = torch.optim.Adam(m.parameters())\nfor epoch in range(3):\n    for _ in range(60):\n"
        "        l = m(torch.randn(8, 64)).mean()\n        o.zero_grad()\n        l.backward()\n        o.step()\n"
        "    kept = []\n    for _ in range(100):\n        kept.append(m(torch.randn(8, 64)))\n"
        "    print(torch.cat(kept).mean().item())\n    del kept\n",
}  # fmt: skip
# Bytes a step by the sizes of the tensors that are kept.
WEIGHTS_BYTES = 4 * (64 * 256 + 256 + 256 * 8 + 8)
GRAPH_BYTES = 4 * (8 * 64 + 8 * 256 + 8 * 8 + 1)  # input, hidden, what is squared, the mean
LEAKS = {
    "weights of every step": (MODEL + "kept = []\n" + TRAIN % 40 +
                              "    kept.append({k: v.clone() for k, v in m.state_dict().items()})\n", WEIGHTS_BYTES),
    "a loss of every step": (MODEL + "kept = []\n" + TRAIN % 200 + "    kept.append(l.detach())\n", 4),
    "a replay buffer that is not full yet": (MODEL + "kept = collections.deque(maxlen=1000)\n" + TRAIN % 300 +
                                             "    kept.append(torch.randn(64))\n", 4 * 64),
    "micro-batches of six long steps": (
        MODEL + "kept = []\no = torch.optim.SGD(m.parameters(), 0.01)\nfor _ in range(6):\n    for _ in range(20):\n        l = m(torch.randn(8, 64)).mean()\n"
        "        l.backward()\n        kept.append(torch.randn(1000))\n    o.step()\n    o.zero_grad()\n", 4 * 1000),
    "a cache that a larger one replaces, without training": (
        "table = torch.zeros(0, 64)\nfor _ in range(300):\n    row = torch.randn(1, 64)\n    table = torch.cat([table, row])\n", 4 * 64),
    "a cache that a larger one replaces, all in one line": (
        "table = torch.zeros(0, 64)\nfor _ in range(300):\n    table = torch.cat([table, torch.randn(1, 64)])\n", 4 * 64),
    "a cache that a larger one replaces, in a function": (
        "def more(table):\n    return torch.cat([table, torch.randn(1, 64)])\n\n\ntable = torch.zeros(0, 64)\n"
        "for _ in range(13):\n    table = more(table)\n", 4 * 64),
    "a cache that is padded by a row": (
        "table = torch.zeros(0, 64)\nfor _ in range(300):\n    table = functional.pad(table, (0, 0, 0, 1))\n", 4 * 64),
    "two caches that larger ones replace, without modules": (
        "w, k, v = torch.randn(32, 32), torch.zeros(0, 32), torch.zeros(0, 32)\nfor _ in range(200):\n"
        "    x = torch.randn(1, 32)\n    k = torch.cat([k, x @ w])\n    v = torch.cat([v, x * 2])\n", 2 * 4 * 32),
    "graphs of the validations of three epochs": (
        MODEL + "o = torch.optim.SGD(m.parameters(), lr=0.1)\nkept = []\nfor epoch in range(3):\n    for _ in range(10):\n"
        "        l = m(torch.randn(8, 64)).mean()\n        o.zero_grad()\n        l.backward()\n        o.step()\n"
        "    for _ in range(10):\n        x = torch.randn(8, 64)\n        kept.append(m(x).pow(2).mean())\n", GRAPH_BYTES),
    "graphs of an evaluation after the training": (
        MODEL + TRAIN % 60 + "kept = []\nfor _ in range(200):\n    x = torch.randn(8, 64)\n    kept.append(m(x).pow(2).mean())\n",
        GRAPH_BYTES),
}  # fmt: skip


def text(body):
    return HEAD.format(seed=0) + "\n" + body
