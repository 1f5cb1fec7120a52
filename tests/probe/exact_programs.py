"""What the tests of counters and scopes run, each in a process of its own. `api` is that of exact.py."""
import asyncio
import contextvars
import json
import os
import random
import threading

import exact

try:
    import torch
except ImportError:  # another Python than that of the tests: blocks of PyTorch's allocator without tensors
    import light
    torch = None

MIB = 1 << 20


def make(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8) if torch else light.Block(size_bytes)


def simple(api):
    """Sizes of which the test knows every sum."""
    result = {"first": api.read(), "gpu": api.read(1, 0)}
    with api.scope() as result["drop_then_keep"]:
        make(64 * MIB)
        kept = make(1024)
    with api.scope() as result["keep_then_drop"]:
        also = make(1024)
        make(64 * MIB)
    before = api.read()
    for size in range(1, 101):
        make(size)
    result["hundred"] = [before, api.read()]
    with api.scope() as result["empty"]:
        make(0)
    with api.scope() as result["shared_memory"]:
        make(4096).share_memory_()
    result["last"] = api.read()
    del kept, also
    return result


def nested(api):
    result = {}
    with api.scope() as result["outer"]:
        big = make(10 * MIB)
        with api.scope() as result["inner"]:
            make(2 * MIB)
            del big
            kept = make(3 * MIB)
        with api.scope() as result["second"]:
            make(MIB)
        del kept
    return result


def recursion(api):
    result = {}

    def descend(depth):
        with api.scope() as result[str(depth)]:
            block = make(MIB)
            if depth:
                descend(depth - 1)
            del block

    descend(9)
    return result


def raising(api):
    result = {}
    try:
        with api.scope() as result["raises"]:
            kept = make(5 * MIB)
            del kept
            raise ValueError
    except ValueError:
        pass
    try:
        with api.scope() as result["out_of_memory"]:
            block = make(MIB)
            torch.empty(1 << 60, dtype=torch.uint8)
    except RuntimeError:
        pass
    del block
    return result


def threads(api):
    """Each thread holds 8 MiB while all are there, and counts 2,000 blocks of its own size besides."""
    count = 4
    results = [{} for _ in range(count)]
    meet = threading.Barrier(count)

    def work(number):
        with api.scope() as results[number]:
            held = make(8 * MIB)
            meet.wait()
            for _ in range(2000):
                make(1000 + number)
            meet.wait()
            del held

    with api.scope() as everything:
        workers = [threading.Thread(target=work, args=(n,)) for n in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return {"threads": results, "all": everything}


def tasks(api):
    """Three tasks take turns on one thread; scopes with contexts, the one without sees all of them."""
    results = {str(n): {} for n in range(3)}
    nested_results = {str(n): {} for n in range(3)}

    async def work(number):
        with api.scope(exact.CURRENT_CONTEXT) as results[str(number)]:
            held = []
            for i in range(10):
                held.append(make((number + 1) * 1000))
                await asyncio.sleep(0)
                with api.scope(exact.CURRENT_CONTEXT) as nested_results[str(number)]:
                    make(number + 1)
                    await asyncio.sleep(0)
            del held

    async def main():
        await asyncio.gather(*(work(n) for n in range(3)))

    with api.scope() as everything, api.scope(exact.CURRENT_CONTEXT) as base:
        asyncio.run(main())
        make(77)
    return {"tasks": results, "nested": nested_results, "all": everything, "base": base}


def contexts(api):
    """The base context before and after it exists, and what runs in a copy of it."""
    result = {}
    variable = contextvars.ContextVar("variable")
    with api.scope(exact.CURRENT_CONTEXT) as result["base"]:
        make(1)
        variable.set(1)  # only now does the thread have a context object
        make(10)
        contextvars.copy_context().run(make, 100)
        make(1000)
    with api.scope() as result["thread"]:
        make(1)
        contextvars.copy_context().run(make, 100)

    def inside():
        with api.scope(exact.CURRENT_CONTEXT) as inner:
            make(5)
            contextvars.copy_context().run(make, 50)
            make(500)
        return inner

    result["inside"] = contextvars.copy_context().run(inside)
    other = threading.Thread(target=lambda: result.update(other_thread=inside()))
    other.start()
    other.join()
    return result


def generators(api):
    """Two generators in turns; each is measured while it runs."""

    def work(size):
        held = []
        for _ in range(5):
            held.append(make(size))
            yield

    def measured(generator):
        scope = api.begin()
        try:
            while True:
                try:
                    value = next(generator)
                except StopIteration:
                    return
                api.switch_out(scope)
                yield value
                api.switch_in(scope)
        finally:
            results.append(api.end(scope))

    results = []
    with api.scope() as everything:
        for _ in zip(measured(work(1000)), measured(work(30000))):
            make(7)
    return {"generators": results, "all": everything}


def fork(api):
    kept = make(MIB)
    outer = api.begin()
    read_end, write_end = os.pipe()  # the child's answer; stdout is the parent's
    if os.fork() == 0:
        own = {"first": api.read(), "parents_scope": api.end(outer)["status"]}
        with api.scope() as own["scope"]:
            make(3 * MIB)
        del kept  # of the parent's time: a block that the child's counting does not know
        own["last"] = api.read()
        os.write(write_end, json.dumps(own).encode())
        os._exit(0)
    child = json.loads(os.read(read_end, 65536))
    status = os.wait()[1]
    make(5 * MIB)
    return {"child": child, "status": status, "parent": api.end(outer), "kept": kept.nbytes}


def workers(api):
    """A DataLoader's forked workers count their own."""
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            with api.scope() as scope:
                make(MIB)
            return torch.tensor([scope["own_peak_bytes"], scope["own_alloc_count"]])

    return torch.cat(list(torch.utils.data.DataLoader(Data(), num_workers=2))).tolist()


def million(api):
    """A million tensors, nine of ten dropped in random order, against a model in Python."""
    chance = random.Random(5)
    live = []
    live_bytes = peak_bytes = alloc_bytes = freed = 0
    with api.scope() as scope:
        for _ in range(1_000_000):
            size = chance.randrange(1, 500)
            live.append(torch.empty(size, dtype=torch.uint8))
            live_bytes += size
            alloc_bytes += size
            peak_bytes = max(peak_bytes, live_bytes)
            if chance.random() < 0.9:
                place = chance.randrange(len(live))
                live[place], live[-1] = live[-1], live[place]
                live_bytes -= live.pop().nbytes
                freed += 1
    model = {"live": live_bytes, "peak": peak_bytes, "freed": freed, "bytes": alloc_bytes}
    return {"model": model, "scope": scope, "counters": api.read()}


def profiled(api):
    """The same steps as PyTorch's own profiler saw them."""
    model = torch.nn.Sequential(torch.nn.Linear(300, 500), torch.nn.ReLU(), torch.nn.Linear(500, 10))
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(64, 300)
    with torch.profiler.profile(profile_memory=True) as profiler:
        with api.scope() as scope:
            for _ in range(5):
                optimizer.zero_grad()
                model(data).square().sum().backward()
                optimizer.step()
    events = [e.nbytes() for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for size in events:
        live += size
        peak = max(peak, live)
    return {"scope": scope, "events": events, "peak": peak}


def everything(api):
    """All that is quick, in one process. `simple` wants the first counters, `contexts` a thread without a context."""
    parts = (simple, contexts, nested, recursion, raising, threads, tasks, generators, fork)
    return {part.__name__: part(api) for part in parts}


def contexts_and_tasks(api):
    return {part.__name__: part(api) for part in (contexts, tasks, generators)}
