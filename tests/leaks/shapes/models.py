"""Models that are made, called once, trained for a few steps."""

from leaks.shapes.text import block, in_scope, joined, network, small

LAYERS = (
    "nn.Linear(<w>, <w>)", "nn.Sequential(nn.Linear(<w>, <w>), nn.ReLU())", "nn.LayerNorm(<w>)",
    "nn.TransformerEncoderLayer(<w>, 2, dim_feedforward=<w>, batch_first=True)",
    "nn.Sequential(nn.Linear(<w>, <w>), nn.LayerNorm(<w>), nn.GELU())",
)  # fmt: skip
CALLS = (
    "pass", "model(<x>)", "with torch.no_grad():\n    model(<x>)", "model(<x>).sum().backward()", "answer = model(<x>)",
    "model.eval()\nwith torch.inference_mode():\n    print(model(<x>).mean().item())",
    "print(sum(p.numel() for p in model.parameters()))",
)  # fmt: skip


def layers_in_a_list(rng):
    width = 2 * rng.randrange(8, 64)
    made = f"model = nn.Sequential(*[{rng.choice(LAYERS)} for _ in range(<depth>)])"
    started = """
        for parameter in model.parameters():
            if parameter.dim() > 1:
                nn.init.<how>(parameter)
    """
    how = rng.choice(("orthogonal_", "xavier_uniform_", "trunc_normal_"))
    parts = [made, block(started, how=how) if rng.random() < 0.3 else "", rng.choice(CALLS)]
    return block(joined(*parts), x=f"torch.randn(2, 3, {width})", depth=rng.randrange(12, 60), w=width)


def layers_one_by_one(rng):
    width = 2 * rng.randrange(8, 64)
    start = rng.choice(("pass", "nn.init.orthogonal_(layer.weight)", "layer.weight.data.mul_(0.5)",
                        "layer.weight = nn.Parameter(torch.randn(<w>, <w>) / <w>)"))  # fmt: skip
    return block("""
        class Net(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.layers = nn.ModuleList()
                for _ in range(depth):
                    layer = nn.Linear(<w>, <w>)
                    <start>
                    self.layers.append(layer)

            def forward(self, value):
                for layer in self.layers:
                    value = value + layer(value).relu()
                return value


        model = Net(<depth>)
        <call>
    """, start=start, call=rng.choice(CALLS), x="torch.randn(2, <w>)", depth=rng.randrange(12, 80), w=width)  # fmt: skip


CONVOLUTIONS = """
class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, value):
        inner = functional.relu(self.norm1(self.conv1(value)))
        return functional.relu(self.norm2(self.conv2(inner)) + value)


model = nn.Sequential(nn.Conv2d(3, <c>, 3), *[Block(<c>) for _ in range(<depth>)], nn.AdaptiveAvgPool2d(1), nn.Flatten())
"""


def convolutions_called_once(rng):
    values = {"c": rng.randrange(4, 24), "depth": rng.randrange(6, 30), "x": "torch.randn(2, 3, 12, 12)"}
    return block(CONVOLUTIONS + rng.choice(CALLS), **values)


def a_few_steps_of_a_deep_model(rng):
    """One to seven steps: fewer than tell a trend."""
    return block(CONVOLUTIONS + """
optimizer = torch.optim.<made>
for _ in range(<n>):
    model(<x>).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""", c=rng.randrange(4, 16), depth=rng.randrange(4, 16), x="torch.randn(2, 3, 10, 10)", n=rng.randrange(1, 8),
        made=rng.choice(("AdamW(model.parameters())", "SGD(model.parameters(), lr=0.1, momentum=0.9)",
                         "Adam(model.parameters(), foreach=False)")))  # fmt: skip


def steps_after_a_loaded_state(rng):
    values = {**small(rng), "n": rng.choice((1, 3, 5, 6, 7, 20)), "made": rng.choice(("Adam", "AdamW", "NAdam"))}
    return block("""
        model = nn.Sequential(nn.Linear(<i>, <h>), nn.BatchNorm1d(<h>), nn.ReLU(), nn.Linear(<h>, <i>))
        x = torch.randn(<b>, <i>)
        optimizer = torch.optim.<made>(model.parameters())
        model(x).mean().backward()
        optimizer.step()
        states = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        del optimizer
        model.zero_grad()
        optimizer = torch.optim.<made>(model.parameters())
        model.load_state_dict(states[0])
        optimizer.load_state_dict(states[1])
        del states
        for _ in range(<n>):
            model(x).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    """, **values)  # fmt: skip


def a_checkpoint_written_and_read(rng):
    values = {**small(rng), "depth": rng.randrange(4, 40)}
    return block("""
        model = nn.ModuleDict({f"part{k}": nn.Linear(<i>, <h>) for k in range(<depth>)})
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        model.load_state_dict(torch.load(file, weights_only=True))
        with torch.no_grad():
            print(sum(part(torch.randn(1, <i>)).sum().item() for part in model.values()))
    """, **values)  # fmt: skip


def a_recurrent_model_by_hand(rng):
    """Many time steps within one pass: the graph grows until the pass ends."""
    values = {**small(rng), "t": rng.randrange(30, 120), "n": rng.choice((1, 1, 2, 12))}
    return block("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.<cell>(<i>, <h>)

            def forward(self, sequence):
                state = torch.zeros(sequence.shape[1], <h>)
                states = []
                for value in sequence:
                    state = self.cell(value, state)
                    states.append(state)
                return torch.stack(states)


        model = Net()
        for _ in range(<n>):
            answer = model(torch.randn(<t>, <b>, <i>))
            <end>
    """, cell=rng.choice(("GRUCell", "RNNCell")), end=rng.choice(("answer.mean().backward()", "print(answer.mean().item())")),
        **values)  # fmt: skip


def several_models_one_after_the_other(rng):
    values = {**small(rng), "n": rng.randrange(3, 9), "k": rng.randrange(4, 30)}
    body = joined(network(rng, values), block("""
        for _ in range(<k>):
            loss = functional.mse_loss(model(torch.randn(<b>, <i>)), torch.zeros(<b>, <o>))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        results.append(loss.item())
    """, **values))  # fmt: skip
    return in_scope(rng, block("""
        results = []
        for trial in range(<n>):
            <body>
        print(min(results))
    """, body=body, **values))  # fmt: skip


SHAPES = [layers_in_a_list, layers_in_a_list, layers_one_by_one, layers_one_by_one, convolutions_called_once,
          a_few_steps_of_a_deep_model, steps_after_a_loaded_state, a_checkpoint_written_and_read,
          a_recurrent_model_by_hand, several_models_one_after_the_other]  # fmt: skip
