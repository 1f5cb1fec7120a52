"""Programs whose modules, parameters, optimizer state and steps are told to the recording. Each prints as JSON what it knows
itself: addresses and sizes of its storages by name. named_programs.py NAME"""

import contextlib
import gc
import json
import sys
import threading

import torch
from torch import nn

import gpumemprof

torch.manual_seed(0)


def address(tensor):
    return tensor.untyped_storage().data_ptr()


def storages(model, optimizer=None):
    """By role and name, what PyTorch says of the model."""
    own = "Sequential." if type(model) is nn.Sequential else ""
    known = {f"parameter {own}{n}": address(p) for n, p in model.named_parameters()}
    known |= {f"buffer {own}{n}": address(b) for n, b in model.named_buffers()}
    if optimizer is not None:
        names = {id(p): own + n for n, p in model.named_parameters()}
        for parameter, state in optimizer.state.items():
            known |= {f"optimizer state {k} of {names[id(parameter)]}": address(v) for k, v in state.items()}
        known |= {f"gradient {own}{n}": address(p.grad) for n, p in model.named_parameters() if p.grad is not None}
    return known


def say(**facts):
    print(json.dumps(facts))


class Tied(nn.Module):
    """The output layer's weight is the embedding's; a list, a dict, a buffer, a frozen layer and one that is never called."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 24, batch_first=True) for _ in range(2))
        self.parts = nn.ModuleDict({"norm": nn.BatchNorm1d(16), "unused": nn.Linear(3, 3)})
        self.head = nn.Linear(16, 50)
        self.head.weight = self.embed.weight
        self.again = self.head  # a second path to it: the first one counts
        for parameter in self.layers[0].parameters():
            parameter.requires_grad_(False)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.parts["norm"](x.transpose(1, 2)).transpose(1, 2))


def train(model, optimizer, data, steps=1):
    for _ in range(steps):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()


def tied():
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, torch.arange(30).reshape(2, 15))
    say(storages=storages(model, optimizer), steps=1)
    train(model, optimizer, torch.arange(30).reshape(2, 15), 2)


def bare():
    """A model that holds its parameters itself."""
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer, torch.ones(2, 8))
    say(storages=storages(model, optimizer), modules={f"{id(model):x}": "Linear"})


def flat():
    """Parameters and gradients that are views of one block each, as those of a model in shards may be."""
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    memory, gradients = torch.zeros(2, 2, 8, 8)
    for layer, part, gradient in zip(model, memory, gradients.clone(), strict=True):
        layer.weight = nn.Parameter(part)
        layer.weight.grad = gradient
    optimizer = torch.optim.SGD(model.parameters())
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    offsets = [t.storage_offset() for layer in model for t in (layer.weight, layer.weight.grad)]
    say(offsets=offsets, storages=storages(model) | {"gradient": address(model[1].weight.grad)})


def changes():
    """State that is made late, loaded, or moved is told again; while nothing changes, nothing is."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model[0].requires_grad_(False)
    optimizer, data = torch.optim.Adam(model.parameters()), torch.ones(2, 8)
    train(model, optimizer, data)
    say(storages=storages(model, optimizer))
    train(model, optimizer, data, 3)
    model[0].requires_grad_(True)
    train(model, optimizer, data)
    say(storages=storages(model, optimizer))
    optimizer.load_state_dict(optimizer.state_dict() | {"state": {k: {n: t.clone() for n, t in s.items()}
                                                                for k, s in optimizer.state_dict()["state"].items()}})  # fmt: skip
    train(model, optimizer, data)
    say(storages=storages(model, optimizer))


def wrapped():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            return torch.compiler.disable(self.inner)(x)

    model = Net()
    compiled = torch.compile(model, backend="eager")
    parallel = nn.DataParallel(compiled)
    train(parallel, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, 8))
    say(storages=storages(model))


def roots():
    """Two models, a loss, and a part that was called on its own before the model was."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.tail = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.tail(self.body(x))

    generator, critic, loss = Net(), Net(), nn.MSELoss()
    generator.body(torch.ones(1, 8))
    for _ in range(2):
        out = critic(generator(torch.ones(3, 8)))
        loss(out, torch.zeros(3, 8)).backward()
    modules = {generator: "Net", generator.body: "body", generator.tail: "tail", loss: "MSELoss",
               critic: "Net#2", critic.body: "Net#2.body", critic.tail: "Net#2.tail"}  # fmt: skip
    say(modules={f"{id(k):x}": v for k, v in modules.items()})
    del modules
    # A model that replaces a part of itself.
    generator.body = nn.Linear(8, 8)
    generator(torch.ones(1, 8))
    say(modules={f"{id(generator.body):x}": "body"})


def parts():
    """A model whose parts the loop calls: nothing calls the model itself."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3))

    model, others = Net(), [nn.Linear(4, 4) for _ in range(2)]
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        x = model.embed(torch.ones(2, 4))
        for layer in model.layers:
            x = layer(x)
        optimizer.zero_grad()
        (model.head(x).sum() + sum(other(torch.ones(1, 4)).sum() for other in others)).backward()
        optimizer.step()
    names = {f"{id(m):x}": n or "Net" for n, m in model.named_modules()}
    say(modules=names | {f"{id(m):x}": n for m, n in zip(others, ("Linear", "Linear#2"))}, storages=storages(model, optimizer))


class Policy(nn.Module):
    """Calls a part of itself while it is set up, as those do that measure their features by a forward pass."""

    def __init__(self):
        super().__init__()
        self.net = self.made()
        self.target = self.made()

    def made(self):
        features = nn.Linear(8, 4)
        return nn.Sequential(features, nn.Linear(features(torch.ones(1, 8)).numel(), 2))


def measured_in_setup():
    """The loop then calls the two networks, of which one is trained, and not the policy."""
    policy = Policy()
    optimizer = torch.optim.Adam(policy.net.parameters())
    for _ in range(2):
        train(policy.net, optimizer, torch.ones(3, 8))
        with torch.no_grad():
            policy.target(torch.ones(3, 8))
    names = {f"{id(m):x}": n or "Policy" for n, m in policy.named_modules()}
    say(modules=names, storages=storages(policy, optimizer))


def taken_in():
    """An encoder is trained alone, and then as a part of a model; a head that nothing calls meanwhile waits."""
    encoder = nn.Linear(8, 4)
    optimizer = torch.optim.Adam(encoder.parameters())
    train(encoder, optimizer, torch.ones(3, 8), steps=2)
    say(weight=address(encoder.weight))
    model = nn.Module()
    model.encoder, model.head = encoder, nn.Linear(4, 2)
    model.forward = lambda x: model.head(encoder(x))
    optimizer.add_param_group({"params": list(model.head.parameters())})
    train(model, optimizer, torch.ones(3, 8), steps=2)
    say(storages=storages(model, optimizer))


def gan():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
    for _ in range(5):
        for model, optimizer in zip((first, second), optimizers):
            train(model, optimizer, torch.ones(1, 4))
    say(steps=5)


def critics():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
    for _ in range(3):
        train(first, optimizers[0], torch.ones(1, 4), 4)
        train(second, optimizers[1], torch.ones(1, 4))
    say(steps=12)


def one_after_another():
    for _ in range(3):
        model = nn.Linear(4, 4)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(1, 4), 3)
    say(steps=9)


def one_after_another_kept():
    kept = []
    for _ in range(3):
        model = nn.Linear(4, 4)
        kept.append(torch.optim.SGD(model.parameters(), lr=0.1))
        train(model, kept[-1], torch.ones(1, 4), 3)
    say(steps=9)


def gans_kept():
    kept = []
    for _ in range(3):
        models = nn.Linear(4, 4), nn.Linear(4, 4)
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
        kept.append(optimizers)
        for _ in range(4):
            for model, optimizer in zip(models, optimizers):
                train(model, optimizer, torch.ones(1, 4))
    say(steps=12)


def accumulated():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(12):
        model(torch.ones(1, 4)).sum().backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    say(steps=3)


def scaled():
    """A step that the scaler leaves out is none."""
    model = nn.Linear(4, 4)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=4.0)
    for i in range(5):
        optimizer.zero_grad()
        loss = model(torch.ones(1, 4)).sum() * (float("inf") if i == 2 else 1)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    say(steps=4)


def closures():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    say(steps=2)


def compiled_steps():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())

    @torch.compile(backend="eager")
    def step():
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(4):
        step()
    say(steps=4)


def own_steps():
    """From the first call on, the optimizer's steps are none any more."""
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, torch.ones(1, 4), 2)
    gpumemprof.step()
    train(model, optimizer, torch.ones(1, 4), 4)
    gpumemprof.step()
    say(steps=4)


async def tasks_around(make):
    """The loop's own code is outside of every task's phase."""
    import asyncio

    async def task():
        with gpumemprof.phase("inside"):
            await asyncio.sleep(0.02)
            make(1041)

    inside = asyncio.ensure_future(task())
    with gpumemprof.phase("main"):
        await asyncio.sleep(0.01)
        make(1042)
        await inside
    make(1043)


def phases():
    import asyncio

    def make(size):
        torch.empty(size, dtype=torch.uint8)

    with gpumemprof.phase("outer"):
        make(1001)
        with contextlib.suppress(KeyError), gpumemprof.phase("inner"):
            make(1002)
            raise KeyError
        make(1003)
        thread = threading.Thread(target=make, args=(1004,))
        thread.start()
        thread.join()
    make(1005)

    @gpumemprof.phase("function")
    def function(n):
        make(1006)
        return n + 1

    @gpumemprof.phase("generator")
    def generator():
        make(1007)
        got = yield 1
        make(1008)
        return got

    @gpumemprof.phase("coroutine")
    async def coroutine():
        make(1009)
        await asyncio.sleep(0)
        make(1010)
        return 5

    @gpumemprof.phase("asynchronous generator")
    async def numbers():
        for i in range(2):
            make(1011 + i)
            yield i

    async def other():
        make(1013)

    async def main():
        result, _ = await asyncio.gather(coroutine(), other())
        return [result] + [i async for i in numbers()]

    run = generator()
    values = [function(1), next(run)]
    make(1014)
    try:
        run.send("sent")
    except StopIteration as stop:
        values.append(stop.value)
    values += asyncio.run(main())

    async def task(name, size):
        with gpumemprof.phase(name):
            make(size + 1)
            await asyncio.sleep(0.01)
            make(size + 2)

    async def tasks():
        with gpumemprof.phase("of the first"):
            await asyncio.sleep(0)
        await asyncio.gather(task("one", 1020), task("two", 1030))

    asyncio.run(tasks())
    with gpumemprof.phase("around"):
        asyncio.run(tasks_around(make))
    for number, name in enumerate(("", "\0n", "\ud800", "a\0b")):
        with gpumemprof.phase(name):
            make(1050 + number)
    say(values=values)


def died():
    """A module that is gone, and another one in its place."""
    for _ in range(3):
        model = nn.Sequential(nn.Linear(4, 4))
        model(torch.ones(2, 4))
        say(modules={f"{id(model):x}": "Sequential", f"{id(model[0]):x}": "Sequential.0"})
        del model
        gc.collect()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
