"""What the shapes are written with: a shape is a function of a random generator that gives the text of a program."""

import textwrap

HEAD = """import collections
import copy
import functools
import io
import itertools
import sys

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed({seed})
torch.set_num_threads(1)
"""


def block(text, **values):
    """The text without its indentation, with `<name>` replaced; a value of several lines keeps the indentation."""
    text = textwrap.dedent(text).strip("\n")
    for _ in range(2):  # a value may name another one
        for name, value in values.items():
            lines = []
            for line in text.split("\n"):
                indent = line[: len(line) - len(line.lstrip())]
                lines.append(line.replace(f"<{name}>", str(value).replace("\n", "\n" + indent)))
            text = "\n".join(lines)
    return text


def indented(text, depth=1):
    return textwrap.indent(text, "    " * depth)


def joined(*parts):
    return "\n".join(part for part in parts if part)


def small(rng):
    """Sizes: inputs, hidden, outputs, rows of a batch."""
    return {"i": rng.randrange(16, 96), "h": rng.randrange(32, 192), "o": rng.randrange(4, 16), "b": rng.randrange(4, 48)}


OPTIMIZERS = ("Adam({}.parameters())", "SGD({}.parameters(), lr=0.1)", "AdamW({}.parameters())",
              "SGD({}.parameters(), lr=0.1, momentum=0.9)", "RMSprop({}.parameters())")  # fmt: skip


def network(rng, sizes, name="model", optimizer="optimizer", acts=("ReLU", "Tanh", "GELU")):
    """A small model and its optimizer."""
    return block("""
        <name> = nn.Sequential(nn.Linear(<i>, <h>), nn.<act>(), nn.Linear(<h>, <o>))
        <optimizer> = torch.optim.<made>
    """, name=name, act=rng.choice(acts), optimizer=optimizer,
        made=rng.choice(OPTIMIZERS).format(name), **sizes)  # fmt: skip


STEP = """
x = torch.randn(<b>, <i>)
y = torch.randn(<b>, <o>)
out = model(x)
loss = functional.mse_loss(out, y)
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


def trained(rng, body, steps=None, before="", after="", **more):
    """A training with `body` in each step; `i` is the number of the step, `<steps>` how many there are."""
    steps = steps or rng.randrange(40, 160)
    values = {**small(rng), "steps": steps, **more}
    loop = f"for i in range({steps}):\n" + indented(joined(block(STEP, **values), block(body, **values)))
    return joined(network(rng, values), block(before, **values), loop, block(after, **values))


def in_scope(rng, text):
    """As it is, or in a function that the program calls once."""
    if rng.random() < 0.5:
        return text
    return "def main():\n" + indented(text) + "\n\n\nmain()"
