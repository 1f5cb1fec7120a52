"""Programs whose memory is put down to modules: attribution_programs.py NAME.

Each prints, as one line of JSON, what it knows itself: "modules", by name and as a stack shows them, and what
else the test asks. It records only what is between `recording()`'s begin and end.
"""
import contextlib
import ctypes
import gc
import json
import os
import sys
import threading
import weakref

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

probe = ctypes.CDLL(None)
BATCH = 40


@contextlib.contextmanager
def recording():
    """Where the probe is not there (the program runs alone), nothing happens."""
    if hasattr(probe, "gpumemprof_start"):
        probe.gpumemprof_start()
    yield
    if hasattr(probe, "gpumemprof_stop"):
        probe.gpumemprof_stop()


def shown(module):
    return f"{type(module).__name__}@{id(module):x}"


def modules_of(model):
    return {name: shown(module) for name, module in model.named_modules()}


def chain():
    """Known layers one after the other; the last is another one of the first one's class."""
    model = nn.Sequential(nn.Linear(24, 56), nn.ReLU(), nn.Sequential(nn.Linear(56, 36), nn.Tanh()), nn.Linear(36, 36))
    x = torch.randn(BATCH, 24)
    with recording():
        out = model(x)
        out.backward(torch.ones_like(out))
    return {"modules": modules_of(model)}


def modes():
    model = nn.Linear(24, 56)
    x = torch.randn(BATCH, 24)
    with recording():
        model(x)
        with torch.no_grad():
            model(x)
        with torch.inference_mode():
            model(x)
    return {"modules": modules_of(model)}


class Recursive(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.linear = nn.Linear(20, 20)
        self.inner = Recursive(depth - 1) if depth else None

    def forward(self, x):
        y = x * 2  # this module's own
        y = self.linear(y)
        return self.inner(y) if self.inner is not None else y


def recursion():
    model = Recursive(5)
    x = torch.randn(BATCH, 20)
    with recording():
        out = model(x)
        out.backward(torch.ones_like(out))
    return {"modules": modules_of(model)}


def threads():
    """Each thread has a model of its own; sequence numbers are each thread's own, so they are the same in both."""
    models = [nn.Sequential(*(nn.Linear(24, 24) for _ in range(4))) for _ in range(3)]
    tids, barrier = {}, threading.Barrier(3)

    def work(i):
        tids[i] = threading.get_native_id()
        x = torch.randn(BATCH, 24)
        barrier.wait()
        for _ in range(50):
            models[i](x).sum().backward()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    with recording():
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return {"modules": [modules_of(model) for model in models], "tids": [tids[i] for i in range(3)]}


FORKED = """
def gradients(loss: Tensor, weight: Tensor):
    return torch.autograd.grad([loss], [weight])

def forked(loss: Tensor, weight: Tensor):
    work = torch.jit.fork(gradients, loss, weight)
    return torch.jit.wait(work)
"""


def no_frames():
    """Backward on a thread of the pool, that has no Python frames: forward was on this one."""
    model = nn.Sequential(nn.Linear(24, 56), nn.ReLU(), nn.Linear(56, 36))
    x = torch.randn(BATCH, 24)
    with recording():
        loss = model(x).sum()
        torch.jit.CompilationUnit(FORKED).forked(loss, model[0].weight)
    return {"modules": modules_of(model), "tid": threading.get_native_id()}


def recomputed():
    """Checkpointing runs the layers once more inside of backward."""
    model = nn.Sequential(nn.Linear(24, 56), nn.ReLU(), nn.Linear(56, 36))
    x = torch.randn(BATCH, 24, requires_grad=True)
    with recording():
        out = checkpoint(model, x)
        out.backward(torch.ones_like(out))
    return {"modules": modules_of(model)}


class Penalty(nn.Module):
    """Calls backward itself, so its frame is around that of every module of the inner one's backward."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(24, 56)

    def forward(self, x):
        (slope,) = torch.autograd.grad(self.inner(x).square().sum(), x, create_graph=True)
        return slope


def nested_backward():
    model = Penalty()
    x = torch.randn(BATCH, 24, requires_grad=True)
    with recording():
        out = model(x)
        out.backward(torch.ones_like(out))
    return {"modules": modules_of(model)}


def saved_storages(node, seen):
    """What the nodes of a graph say themselves that they keep."""
    if node is None or node in seen:
        return
    seen.add(node)
    for name in dir(node):
        if name.startswith("_saved_") and isinstance(getattr(node, name), torch.Tensor):
            yield getattr(node, name).untyped_storage().data_ptr()
    for inner, _ in node.next_functions:
        yield from saved_storages(inner, seen)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.norm = nn.LayerNorm(32)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        weights = torch.softmax(q @ k.transpose(-1, -2), -1)
        return x + nn.functional.gelu(self.out(torch.dropout(weights, 0.1, self.training) @ v))


def saved():
    """The same forward twice: what the first graph keeps, and what saved_tensors_hooks see of the second."""
    model = nn.Sequential(nn.Embedding(50, 32), Attention(), Attention(), nn.Linear(32, 10))
    tokens = torch.randint(0, 50, (4, 16))
    with recording():
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten() % 10)
    kept = sorted(set(saved_storages(loss.grad_fn, set())))
    packed = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        packed.setdefault(storage.data_ptr(), (tensor, storage.nbytes()))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        again = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten() % 10)
    sizes = [size for _, size in packed.values()]
    older = {p.untyped_storage().data_ptr(): p.untyped_storage().nbytes() for p in [*model.parameters(), tokens]}
    with recording(), torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        hooked = model(tokens)  # the program's hooks take these, so autograd itself saves nothing
    del again, hooked
    return {"kept": kept, "hook_sizes": sorted(sizes), "older": older}


def left_alone():
    """What a program sees of itself; the same with the recorder and without."""
    model = nn.Sequential(Attention(), Attention())
    x = torch.randn(4, 16, 32, requires_grad=True)
    torch.manual_seed(3)
    states = []
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        hidden = checkpoint(model, x, use_reentrant=False) if step == 1 else compiled(x)
        reference = weakref.ref(hidden)
        loss = hidden.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        del hidden, loss
        gc.collect()
        states.append((value.hex(), reference() is None))
    graph = model(x).grad_fn
    names, todo = [], [graph]
    while todo:
        node = todo.pop()
        names.append(node.name())
        todo += [inner for inner, _ in node.next_functions if inner is not None]
    encoder = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    with torch.inference_mode(), torch.profiler.profile() as profile:
        encoder(torch.ones(2, 5, 32))
    operators = sorted((e.key, e.count) for e in profile.key_averages())
    return {"states": states, "graph": names, "operators": operators}


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    if "ATTACH_TO" in os.environ:  # late, after import torch
        probe = ctypes.CDLL(os.environ["ATTACH"])
        assert probe.gpumemprof_attach(os.environ["ATTACH_TO"].encode(), 0) == 1
    if hasattr(probe, "gpumemprof_stop"):
        if sys.argv[1] != "left_alone":
            probe.gpumemprof_stop()
    print(json.dumps(globals()[sys.argv[1]]()), flush=True)
    if sys.argv[1] == "no_frames":
        os._exit(0)  # some releases of PyTorch abort when their pool of threads ends with the process
