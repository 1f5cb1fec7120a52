"""Trains and evaluates in the ways in which PyTorch looks at hooks and modes, and prints all that could be seen of it:
losses to the last bit, operators, graphs, hooks. With and without a recorder it must print the same.

unchanged.py WHAT
"""

import contextlib
import gc
import hashlib
import json
import struct
import sys
import warnings
import weakref

import torch
from torch.nn.modules import module as registries
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1)
torch.set_num_threads(1)


def bits(value):
    return struct.pack("<d", float(value)).hex()


def say(**facts):
    print(json.dumps(facts, sort_keys=True), flush=True)


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first, self.second = torch.nn.Linear(size, 2 * size), torch.nn.Linear(2 * size, size)
        self.register_buffer("scale", torch.full((1,), 0.5))

    def forward(self, x):
        return x + self.scale * self.second(torch.nn.functional.gelu(self.first(x)))


class Net(torch.nn.Module):
    def __init__(self, size=16, with_checkpoints=False):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(size) for _ in range(3))
        self.head = torch.nn.Linear(size, 1)
        self.with_checkpoints = with_checkpoints

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.with_checkpoints else block(x)
        return self.head(x)


def train(model, optimizer, steps=4, forward=None):
    losses = []
    for i in range(steps):
        optimizer.zero_grad()
        loss = (model if forward is None else forward)(torch.sin(torch.arange(64.0) + i).reshape(4, 16)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(bits(loss.detach()))
    return losses


def operators(work):
    """What torch.profiler lists, in order."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=False) as profile:
        work()
    return [event.name for event in sorted(profile.events(), key=lambda e: (e.time_range.start, -e.time_range.end))]


def plain():
    model = Net()
    for optimizer in (
        torch.optim.SGD(model.parameters(), lr=0.01),
        torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        torch.optim.AdamW(model.parameters(), foreach=True),
    ):
        names = operators(lambda: say(losses=train(model, optimizer)))  # noqa: B023
        say(operators=names)


def checkpointed():
    model = Net(with_checkpoints=True)
    say(operators=operators(lambda: say(losses=train(model, torch.optim.Adam(model.parameters())))))


def evaluated():
    """The fast path of the encoder is taken only where no hook is in the way."""
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.ones(2, 5, 16)
    names = []
    with torch.no_grad():
        for _ in range(3):
            names += operators(lambda: say(sum=bits(layer(x).sum())))
    say(operators=names)
    assert "aten::_transformer_encoder_layer_fwd" in names


graphs = []
COUNTED = ("frames", "stats", "graph_break", "recompiles")


def backend(graph, examples):
    graphs.append(hashlib.sha256(str(graph.graph).encode()).hexdigest())
    return graph.forward


def compiled():
    from torch._dynamo.utils import counters

    model, optimizers = Net(), []
    forward = torch.compile(model, backend=backend)
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        optimizers.append(kind(model.parameters(), lr=0.01))
        say(losses=train(model, optimizers[-1], forward=forward))
    say(losses=[bits(forward(torch.ones(n, 16)).sum().detach()) for n in (2, 3, 5)])  # recompiles
    say(graphs=graphs, **{k: dict(counters[k]) for k in COUNTED})


def compiled_steps():
    """Backward and the optimizer too, as far as PyTorch follows them."""
    from torch._dynamo.utils import counters

    for kind in (torch.optim.SGD, torch.optim.AdamW):
        model = Net()
        optimizer = kind(model.parameters(), lr=0.01)

        @torch.compile(backend=backend)
        def whole_step(x):
            loss = model(x).mean()  # noqa: B023
            loss.backward()
            optimizer.step()  # noqa: B023
            optimizer.zero_grad()  # noqa: B023
            return loss

        say(losses=[bits(whole_step(torch.ones(4, 16)).detach()) for _ in range(3)])
        say(stepped=[bits(p.sum().detach()) for p in model.parameters()])
        only_step = torch.compile(optimizer.step, backend=backend)
        model(torch.ones(4, 16)).mean().backward()
        for _ in range(3):
            only_step()
        say(stepped=[bits(p.sum().detach()) for p in model.parameters()])
    say(graphs=graphs, **{k: dict(counters[k]) for k in COUNTED})


def inductor():
    model = Net()
    say(losses=train(model, torch.optim.SGD(model.parameters(), lr=0.01), forward=torch.compile(model)))


def explained():
    explanation = torch._dynamo.explain(Net())(torch.ones(4, 16))
    say(graphs=explanation.graph_count, breaks=explanation.graph_break_count, ops=explanation.op_count)


class Mode(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


class FunctionMode(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))


def modes():
    for mode in (Mode(), FunctionMode()):
        model = Net()
        with mode:
            say(losses=train(model, torch.optim.AdamW(model.parameters())))
        say(seen=mode.seen)
    model = Net()
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, x):
        return torch.func.functional_call(model, parameters, (x,)).sum()

    grads = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, torch.ones(3, 4, 16))
    say(grads={name: bits(g.sum()) for name, g in grads.items()})
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = Net()
        say(shape=list(fake(torch.ones(4, 16)).shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that tracing is of the past
        traced = torch.jit.trace(Net(), torch.ones(4, 16))
    say(traced=str(traced.graph).count("\n"))
    with torch.device("meta"):
        say(meta=str(Net()(torch.ones(4, 16)).device))


def watched():
    """By a debugger, a profiler and the interpreter's own audit."""
    seen = []

    def note(frame, event, argument):
        where = frame.f_code.co_filename
        what = getattr(argument, "__qualname__", "") if event.startswith("c_") else frame.f_code.co_qualname
        if "torch" in where or where == __file__:
            seen.append(f"{event} {what}")
        return note

    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    for install, name in ((sys.setprofile, "profile"), (sys.settrace, "trace")):
        install(note)
        losses = train(model, optimizer, steps=2)
        install(None)
        # But for the turn of PyTorch's loop over the hooks after an optimizer's step: ours is a function in C.
        rest = [e for e in seen if e != "line Optimizer.profile_hook_step.<locals>.wrapper"]
        say(what=name, losses=losses, count=len(rest), seen=hashlib.sha256("\n".join(rest).encode()).hexdigest())
        seen.clear()
    audited = []
    sys.addaudithook(lambda name, args: audited.append(name) if audited is not None else None)
    train(model, optimizer, steps=2)
    count, audited = len(audited), None
    say(audited=count)


def kept():
    """Activations that were dropped are dead at once, without a collection of garbage."""
    gc.disable()
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    alive = []
    for block in model.blocks:
        original = block.forward

        def forward(x, original=original):
            hidden = original(x)
            alive.append(weakref.ref(hidden))
            return hidden

        block.forward = forward
    for _ in range(3):
        train(model, optimizer, steps=1)
        say(alive=sum(reference() is not None for reference in alive), of=len(alive))
    dead = weakref.ref(model.blocks[0]), weakref.ref(optimizer)
    del model, optimizer, block, forward, original
    gc.enable()
    gc.collect()
    say(dead=[reference() is None for reference in dead])


def registered():
    """What PyTorch knows of hooks and modes. The hook after an optimizer's step is the one there may be."""
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, steps=2)
    hooks = {name: len(value) for name, value in vars(registries).items() if name.startswith("_global") and hasattr(value, "__len__")}
    own = {name: len(value) for m in model.modules() for name, value in vars(m).items() if name.endswith("hooks")}
    tensors = [(p._backward_hooks is None, p._post_accumulate_grad_hooks is None) for p in model.parameters()]
    say(hooks=hooks, own=own, tensors=tensors, optimizers={k: len(v) for k, v in vars(optimizer).items() if "hooks" in k})
    say(modes=[torch._C._len_torch_dispatch_stack(), torch._C._len_torch_function_stack()])
    say(saved=torch._C._autograd._top_saved_tensors_default_hooks(False) is None)
    say(attributes=[sorted(vars(m)) for m in model.modules()], gc=[gc.isenabled(), gc.get_threshold(), len(gc.callbacks)])
    say(keys=[sorted(vars(optimizer)), sorted(model.state_dict()), sorted(optimizer.state_dict())])


if __name__ == "__main__":
    with contextlib.redirect_stderr(sys.stderr):
        globals()[sys.argv[1]]()
