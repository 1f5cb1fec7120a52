"""Models that answer: one text that is generated, requests that are served, plain loops that compute."""

from leaks.shapes.text import block, in_scope, joined, network, small

LANGUAGE_MODEL = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(<h>, 3 * <h>), nn.Linear(<h>, <h>)

    def forward(self, value, past):
        query, key, value = self.project(value).chunk(3, dim=-1)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=1), torch.cat([past[1], value], dim=1)
        weights = (query @ key.transpose(1, 2) / <h> ** 0.5).softmax(-1)
        return self.out(weights @ value), (key, value)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(<words>, <h>), nn.Linear(<h>, <words>)
        self.layers = nn.ModuleList([Attention() for _ in range(<depth>)])

    def forward(self, tokens, past=None):
        value, after = self.embed(tokens), []
        for layer, before in zip(self.layers, past or [None] * len(self.layers)):
            more, kept = layer(value, before)
            value = value + more
            after.append(kept)
        return self.head(value), after
"""
GENERATE = """
@torch.no_grad()
def generate(model, tokens, count):
    past, latest = None, tokens
    for _ in range(count):
        scores, past = model(latest, past)
        latest = scores[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, latest], dim=1)
    return tokens
"""
LIBRARY = "tinylm"
"""The name of the package in a site-packages folder that has generate()."""


def library(rng=None):
    """The text of that package: generate() with a cache, as libraries have it, which grows by a token in each round."""
    return "import torch\n" + GENERATE


def one_text_by_a_library(rng):
    values = {**small(rng), "words": rng.randrange(50, 200), "depth": rng.randrange(1, 5)}
    return block(LANGUAGE_MODEL + """

from tinylm import generate

model = Model().eval()
for _ in range(<n>):
    print(generate(model, torch.randint(0, <words>, (1, 8)), <t>).shape)
""", n=rng.choice((1, 1, 1, 3)), t=rng.randrange(60, 300), **values)  # fmt: skip


def texts_by_hand(rng):
    values = {**small(rng), "words": rng.randrange(50, 200), "depth": rng.randrange(1, 3)}
    return block(LANGUAGE_MODEL + "\n" + GENERATE + """

model = Model().eval()
for _ in range(<n>):
    print(generate(model, torch.randint(0, <words>, (2, 8)), <t>).shape)
""", n=rng.choice((1, 2, 5)), t=rng.randrange(60, 200), **values)  # fmt: skip


def the_whole_text_again_for_each_token(rng):
    values = {**small(rng), "words": rng.randrange(50, 200), "depth": 1}
    return block(LANGUAGE_MODEL + """

model = Model().eval()
tokens = torch.zeros(1, 1, dtype=torch.int64)
with torch.inference_mode():
    for _ in range(<t>):
        scores, _ = model(tokens<cut>)
        tokens = torch.cat([tokens, scores[:, -1:].argmax(-1)], dim=1)
print(tokens.tolist())
""", t=rng.randrange(40, 150), cut=rng.choice(("", "[:, -16:]")), **values)  # fmt: skip


ANSWERS = (
    "answer = model(torch.randn(<b>, <i>)).argmax(-1).tolist()",
    "answer = model(torch.randn(int(torch.randint(1, <b>, ())), <i>)).softmax(-1)",
    "cache[i % <few>] = model(torch.randn(<b>, <i>))",
    "if len(cache) < <few>:\n    cache[i] = torch.randn(<b>, <i>)\nanswer = model(cache[i % len(cache)])",
    "if i < <third>:\n    cache[i] = model(torch.randn(<b>, <i>))\nanswer = model(torch.randn(<b>, <i>)).sum().item()",
    "cache[i] = model(torch.randn(<b>, <i>))\nif len(cache) > <few>:\n    cache.pop(min(cache))",
    "recent.append(model(torch.randn(<b>, <i>)))",
    "state = model(torch.randn(<b>, <i>)) if i % <few> == 0 else torch.cat([state, model(torch.randn(1, <i>))])",
    "total += model(torch.randn(<b>, <i>)).sum(0)",
)  # fmt: skip


def requests(rng):
    steps = rng.randrange(40, 300)
    values = {**small(rng), "steps": steps, "few": rng.randrange(4, 16), "third": steps // 3}
    return in_scope(rng, joined(network(rng, values), block("""
        cache, recent, total = {}, collections.deque(maxlen=<few>), torch.zeros(<o>)
        model.eval()
        with torch.<mode>():
            for i in range(<steps>):
                <answer>
    """, answer=rng.choice(ANSWERS), mode=rng.choice(("no_grad", "inference_mode")), **values)))  # fmt: skip


PLAIN = (
    "vector = matrix @ vector\nvector /= vector.norm()",
    "distance = torch.cdist(points, centres).argmin(1)\n"
    "centres = torch.stack([points[distance == k].mean(0) if (distance == k).any() else centres[k] for k in range(3)])",
    "table = table if i > <third> else torch.cat([table, torch.randn(1, <i>)])\nvector = vector + table.mean(0)",
    "if i < <third>:\n    kept.append(torch.randn(<i>))\nvector = vector + torch.stack(kept).mean(0)",
    "kept.append(matrix.sum(0))\nif len(kept) == <few>:\n    vector = torch.stack(kept).mean(0)\n    kept.clear()",
    "vector = torch.fft.rfft(torch.fft.irfft(vector, <i>)).real[:<i>].repeat(2)[:<i>]",
    "matrix = (matrix + matrix.T) / 2\nvalues = torch.linalg.eigvalsh(matrix)",
)  # fmt: skip


def a_plain_loop(rng):
    steps = rng.randrange(40, 300)
    return in_scope(rng, block("""
        matrix, vector, kept = torch.randn(<i>, <i>), torch.randn(<i>), []
        points, centres, table = torch.randn(<b>, <i>), torch.randn(3, <i>), torch.randn(1, <i>)
        for i in range(<steps>):
            <body>
        print(vector.norm().item(), centres.sum().item())
    """, body=rng.choice(PLAIN), steps=steps, third=steps // 3, few=rng.randrange(4, 16), **small(rng)))  # fmt: skip


SIZES = (
    "values = torch.randn(size, <i>)\nproduct = values @ weight",
    "values = torch.randn(size, <i>) * 2",
    "values = torch.randn(size, <i>)\nmeans = values.mean(0)\nleast = values.amin(1)",
    "values = torch.randn(<b>, size)\nprint((values @ values.T).sum().item())",
)


def a_sweep_of_sizes(rng):
    """As a benchmark does, from the smallest to the largest."""
    return in_scope(rng, block("""
        weight = torch.randn(<i>, <o>)
        for size in range(<d>, <n> * <d>, <d>):
            <body>
    """, body=rng.choice(SIZES), n=rng.randrange(16, 200), d=rng.randrange(8, 200), **small(rng)))  # fmt: skip


def a_table_joined_and_used(rng):
    return in_scope(rng, block("""
        table = torch.zeros(0, <h>)
        for _ in range(<n>):
            <join>
        <use>
    """, join=rng.choice(("table = torch.cat([table, torch.randn(<b>, <h>)])",
                          "row = torch.randn(<b>, <h>)\ntable = torch.cat([table, row])")),
        use=rng.choice(("print(table.norm().item())", "table = (table - table.mean(0)) / table.std(0)",
                        "with torch.no_grad():\n    print(nn.Linear(<h>, <o>)(table).argmax(1).bincount())")),
        n=rng.randrange(40, 300), **small(rng)))  # fmt: skip


SHAPES = [one_text_by_a_library, one_text_by_a_library, texts_by_hand, the_whole_text_again_for_each_token,
          requests, requests, requests, requests, a_plain_loop, a_plain_loop, a_plain_loop, a_sweep_of_sizes,
          a_table_joined_and_used]  # fmt: skip
