"""A transformer's training step that fills the GPU, timed with recorders switched on and off in turn.

    gpu_step.py FORM SECONDS TOOL...   FORM: eager, compiled, or graphs (compiled, replayed as CUDA graphs)
One line of JSON: for each tool the pairs of blocks, as blocks.toggled gives them.
"""

import gc
import json
import sys

import blocks
import torch
from torch import nn

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 12, 1024, 16, 1024, 16, 32_000
BLOCK_STEPS, WARM_STEPS, FIRST_STEPS = 5, 1, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.norm_after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        query, key, value = self.project(self.norm(x)).view(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm_after(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


def make_step(form):
    torch.manual_seed(0)
    model = Decoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), device="cuda")
    forward = model
    if form != "eager":
        forward = torch.compile(model, mode="reduce-overhead" if form == "graphs" else None)

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            scores = forward(tokens[:, :-1])
            loss = nn.functional.cross_entropy(scores.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()

    return step


def main():
    form, seconds, *tools = sys.argv[1:]
    step = make_step(form)
    for _ in range(FIRST_STEPS):
        step()
    gc.collect()
    gc.freeze()
    result = {"form": form, "tools": {}}
    for name in tools:
        tool = blocks.TOOLS[name]()
        result["tools"][name] = blocks.toggled(tool, step, 1000, WARM_STEPS, BLOCK_STEPS, 1, float(seconds))
    result["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
