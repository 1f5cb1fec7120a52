"""Sessions that keep keys and values of every token: argv[1] tokens after each prompt of 20, for 40 sessions of two layers
of width 64. With argv[2] the scores of every token are kept beside them."""

import sys

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 192)

    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, -1)
        if cache is not None:
            k = torch.cat([cache[0], k], 1)
            v = torch.cat([cache[1], v], 1)
        return nn.functional.scaled_dot_product_attention(q, k, v), (k, v)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x, caches):
        made = []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, caches[i] if caches else None)
            made.append(cache)
        return x[:, -1:], made


class Server:
    def __init__(self):
        self.model, self.sessions = Model().eval(), {}

    @torch.inference_mode()
    def answer(self, session, tokens):
        last, caches = self.model(torch.randn(1, 20, 64), None)
        scores = []
        for _ in range(tokens):
            last, caches = self.model(last, caches)
            if len(sys.argv) > 2:
                scores.append(last.repeat(1, 20, 1))
        self.sessions[session] = (caches, tuple(scores))


server = Server()
for number in range(40):
    server.answer(number, int(sys.argv[1]))
