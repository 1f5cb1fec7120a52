"""Allocates from every shape of Python code and prints the stack that Python itself sees at that moment.

A Size is turned into a number by torch.empty's argument parser, so its __index__ runs inside the very call that
allocates: the frames it finds are the frames of the allocation, line by line, whatever the call looks like.
One JSON line a tensor: {"what", "size", "stack": [[file, line, qualified name], ...]}, innermost first.
"""
import asyncio
import atexit
import concurrent.futures
import contextlib
import functools
import gc
import json
import os
import signal
import sys
import tempfile
import threading
import traceback
import weakref

import torch
import torch.utils.checkpoint

next_size = 100_000
seen = {}
kept = []
lock = threading.Lock()


class Size:
    def __init__(self, what):
        global next_size
        with lock:
            next_size += 1
            self.value = next_size
        self.what = what

    def __index__(self):
        stack = [(f.f_code.co_filename, line, f.f_code.co_qualname)
                 for f, line in traceback.walk_stack(sys._getframe(1))]
        seen[self.value] = {"what": self.what, "size": self.value, "stack": stack}
        return self.value


def empty(what):  # for shapes whose point is the caller
    return torch.empty(Size(what), dtype=torch.uint8)


# --- expressions ------------------------------------------------------------------------------------------------
torch.empty(Size("module level"), dtype=torch.uint8)
torch.empty(
    Size("call over several lines"),
    dtype=torch.uint8,
)
_ = [torch.empty(Size("list comprehension"), dtype=torch.uint8) for _ in range(3)]
_ = {i: torch.empty(Size("dict comprehension"), dtype=torch.uint8) for i in range(2)}
_ = {torch.empty(Size("set comprehension"), dtype=torch.uint8) for _ in range(2)}
_ = list(torch.empty(Size("generator expression"), dtype=torch.uint8) for _ in range(2))
_ = [
    [
        torch.empty(Size("nested comprehension"), dtype=torch.uint8)
        for _ in range(2)
    ]
    for _ in range(2)
]
_ = (lambda: torch.empty(Size("lambda"), dtype=torch.uint8))()
_ = (lambda f: (
    f(),
    f(),
))(lambda: empty("lambda over lines"))
_ = (torch.empty(Size("first operand"), dtype=torch.uint8)[:1] +
     torch.empty(Size("second operand, other line"), dtype=torch.uint8)[:1])
_ = f"{torch.empty(Size('f-string'), dtype=torch.uint8).shape}"
if (walrus := torch.empty(Size("walrus"), dtype=torch.uint8)) is None:
    pass
_ = (torch.empty(Size("ternary, true"), dtype=torch.uint8)
     if walrus is not None
     else torch.empty(Size("ternary, false"), dtype=torch.uint8))
x = 1; y = torch.empty(Size("second statement of a line"), dtype=torch.uint8)
z = torch.empty(Size("backslash"), dtype=torch.uint8), \
    torch.empty(Size("after a backslash"), dtype=torch.uint8)


# --- functions --------------------------------------------------------------------------------------------------
def many_lines():
    for i in range(3):
        torch.empty(Size("loop body"), dtype=torch.uint8)
        if i == 1:
            torch.empty(Size("branch"), dtype=torch.uint8)
            continue
    else:
        torch.empty(Size("for-else"), dtype=torch.uint8)
    while True:
        torch.empty(Size("while"), dtype=torch.uint8)
        break
    try:
        torch.empty(Size("try"), dtype=torch.uint8)
        raise ValueError
    except ValueError:
        torch.empty(Size("except"), dtype=torch.uint8)
    finally:
        torch.empty(Size("finally"), dtype=torch.uint8)
    match x:
        case 1:
            torch.empty(Size("match"), dtype=torch.uint8)
    return torch.empty(Size("return"), dtype=torch.uint8)


def decorator(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(
            *args,
            **kwargs)
    return wrapper


@decorator
@decorator
def decorated():
    return torch.empty(Size("decorated"), dtype=torch.uint8)


def default_argument(value=torch.empty(Size("default argument"), dtype=torch.uint8)):
    return value


def outer():
    def middle():
        def inner():
            return torch.empty(Size("closure"), dtype=torch.uint8)
        return inner()
    return middle()


def recursion(depth, what):
    if depth == 0:
        return torch.empty(Size(what), dtype=torch.uint8)
    return recursion(depth - 1, what)


def even(depth):
    if depth == 0:
        return empty("mutual recursion")
    return odd(depth - 1)


def odd(depth):
    return even(depth - 1)


many_lines()
decorated()
default_argument()
outer()
even(20)
functools.partial(empty, "functools.partial")()
functools.reduce(lambda a, b: empty("functools.reduce"), [1, 2])
list(map(lambda _: empty("map"), range(2)))
sorted([2, 1], key=lambda _: empty("sort key").numel())
max([2, 1], key=lambda _: empty("max key").numel())


# --- classes ----------------------------------------------------------------------------------------------------
class Meta(type):
    def __new__(mcs, name, bases, namespace):
        empty("metaclass __new__")
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args):
        empty("metaclass __call__")
        return super().__call__(*args)


class Thing(metaclass=Meta):
    body = torch.empty(Size("class body"), dtype=torch.uint8)
    table = [torch.empty(Size("comprehension in a class body"), dtype=torch.uint8) for _ in range(1)]

    class Nested:
        body = torch.empty(Size("nested class body"), dtype=torch.uint8)

    def __init_subclass__(cls):
        empty("__init_subclass__")

    def __init__(self):
        self.buffer = torch.empty(Size("__init__"), dtype=torch.uint8)

    def __call__(self):
        return torch.empty(Size("__call__"), dtype=torch.uint8)

    def __getattr__(self, name):
        return torch.empty(Size("__getattr__"), dtype=torch.uint8)

    def __getitem__(self, key):
        return torch.empty(Size("__getitem__"), dtype=torch.uint8)

    def __add__(self, other):
        return torch.empty(Size("__add__"), dtype=torch.uint8)

    def __eq__(self, other):
        return empty("__eq__") is None

    def __hash__(self):
        return empty("__hash__").numel()

    def __iter__(self):
        yield torch.empty(Size("__iter__"), dtype=torch.uint8)

    def __len__(self):
        return empty("__len__").numel()

    def __bool__(self):
        return empty("__bool__") is None

    def __str__(self):
        return str(empty("__str__").numel())

    def __enter__(self):
        return torch.empty(Size("__enter__"), dtype=torch.uint8)

    def __exit__(self, *exception):
        torch.empty(Size("__exit__"), dtype=torch.uint8)

    def __del__(self):
        torch.empty(Size("__del__"), dtype=torch.uint8)

    @property
    def prop(self):
        return torch.empty(Size("property"), dtype=torch.uint8)

    @staticmethod
    def static():
        return torch.empty(Size("staticmethod"), dtype=torch.uint8)

    @classmethod
    def klass(cls):
        return torch.empty(Size("classmethod"), dtype=torch.uint8)

    @functools.cached_property
    def cached(self):
        return torch.empty(Size("cached_property"), dtype=torch.uint8)


class Sub(Thing):
    def __init__(self):
        super().__init__()


class Slot:
    def __set_name__(self, owner, name):
        empty("__set_name__")

    def __get__(self, instance, owner):
        return empty("descriptor")


class Host:
    slot = Slot()


thing = Thing()
thing(), thing.nothing, thing[0], thing + 1, thing == 2, hash(thing), list(thing), len(thing), bool(thing)
str(thing), thing.prop, thing.static(), thing.klass(), thing.cached, Host().slot
with thing:
    pass
Sub()
del thing


# --- generators and coroutines ----------------------------------------------------------------------------------
def generator():
    yield torch.empty(Size("generator"), dtype=torch.uint8)
    received = yield torch.empty(Size("generator, second step"), dtype=torch.uint8)
    try:
        yield torch.empty(Size("generator after send"), dtype=torch.uint8)
    finally:
        torch.empty(Size("generator closed"), dtype=torch.uint8)


def delegating():
    yield torch.empty(Size("before yield from"), dtype=torch.uint8)
    yield from generator()


def step(g):
    return next(g)


@contextlib.contextmanager
def managed():
    torch.empty(Size("context manager enters"), dtype=torch.uint8)
    yield
    torch.empty(Size("context manager leaves"), dtype=torch.uint8)


async def leaf(what):
    await asyncio.sleep(0)
    return torch.empty(Size(what), dtype=torch.uint8)


async def agen():
    for _ in range(2):
        await asyncio.sleep(0)
        yield torch.empty(Size("async generator"), dtype=torch.uint8)


class Awaitable:
    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return torch.empty(Size("__await__"), dtype=torch.uint8)


class AsyncManager:
    async def __aenter__(self):
        return torch.empty(Size("__aenter__"), dtype=torch.uint8)

    async def __aexit__(self, *exception):
        torch.empty(Size("__aexit__"), dtype=torch.uint8)


async def coroutine():
    torch.empty(Size("coroutine"), dtype=torch.uint8)
    await leaf("awaited coroutine")
    await asyncio.gather(leaf("task"), leaf("task"), leaf("task"))
    async for _ in agen():
        torch.empty(Size("async for"), dtype=torch.uint8)
    _ = [t async for t in agen()]
    _ = [await leaf("await in a comprehension") for _ in range(2)]
    await Awaitable()
    async with AsyncManager():
        torch.empty(Size("async with"), dtype=torch.uint8)
    await asyncio.get_running_loop().run_in_executor(None, empty, "run_in_executor")
    await asyncio.to_thread(empty, "to_thread")


g = delegating()
step(g), next(g), g.send(None), g.send(1), g.close()
with managed():
    torch.empty(Size("with body"), dtype=torch.uint8)
asyncio.run(coroutine())

# --- code made at run time --------------------------------------------------------------------------------------
exec("torch.empty(Size('exec of a string'), dtype=torch.uint8)")
eval("torch.empty(Size('eval of a string'), dtype=torch.uint8)")
exec(compile("\n\n\nimport torch\ndef f():\n\n  return torch.empty(Size('compiled'), dtype=torch.uint8)\nf()", "made up", "exec"))


def run_source(what, body, name):
    exec(compile(body.replace("WHAT", repr(what)), name, "exec"), globals())


# A location table whose entries need every width: far lines, lines that go back, constants beyond one byte.
run_source("far line", "\n" * 70_000 + "torch.empty(Size(WHAT), dtype=torch.uint8)", "far.py")
run_source("far jump", "def f():\n  a = 1" + "\n" * 5_000 + "  return torch.empty(Size(WHAT), dtype=torch.uint8)\nf()", "jump.py")
run_source("line goes back", "f = (lambda *a: a[-1])\n_ = f(\n1,\n2,\n3,\n torch.empty(\n\n\n Size(WHAT), dtype=torch.uint8))", "back.py")
run_source("wide column", "_ = 1 if False else (" + " " * 400 + "torch.empty(Size(WHAT), dtype=torch.uint8))", "wide.py")
run_source("many constants", "def f():\n" + "".join(f"  a{i} = {i}.5 + len('{i}x')\n" for i in range(600)) +
           "  return torch.empty(Size(WHAT), dtype=torch.uint8)\nf()", "constants.py")
run_source("far jump back", "def f():\n  for i in range(2):\n" + "".join(f"    a{i} = i\n" for i in range(600)) +
           "    torch.empty(Size(WHAT), dtype=torch.uint8)\nf()", "loop.py")
run_source("three hundred lines", "def f():\n" + "  torch.empty(Size(WHAT), dtype=torch.uint8)\n" * 300 + "f()", "lines.py")

# Names of every kind of str: one byte (ASCII, Latin-1), two bytes, four bytes; and names that hurt careless writers.
for name in ["é", "ÿþ", "日本", "Ω_ñ", "𝔘𝔫𝔦", "ﬁ", "x" * 300, "名" * 300]:
    run_source("function name " + name, f"def {name}():\n\n  return torch.empty(Size(WHAT), dtype=torch.uint8)\n{name}()", "names.py")
for name in ["é.py", "ÿ/þ.py", "日本/語.py", "Ωñ.py", "🔥/🧠.py", "a b/c d.py", 'quo"te.py', "back\\slash.py", "tab\there.py",
             "new\nline.py", "colon:12 f.py", "\x01\x1f\x7f.py", "", "<string>", "undecodable\udcff.py", "d" * 3000 + ".py", "語" * 1200 + ".py", "too long" * 700]:
    run_source("file name", "\n\ndef f():\n  return torch.empty(Size(WHAT), dtype=torch.uint8)\nf()", name)
run_source("class name", "class Größe:\n  class 日:\n    def é(self): return torch.empty(Size(WHAT), dtype=torch.uint8)\nGröße.日().é()", "class.py")

with tempfile.TemporaryDirectory() as folder:  # imported code: the frames of the import system are there too
    path = os.path.join(folder, "módulo_日🔥")
    os.mkdir(path)
    with open(os.path.join(path, "imported_module.py"), "w", encoding="utf-8") as f:
        f.write("import sys\nmain = sys.modules['__main__']\nmain.empty('imported module')\n")
    sys.path.insert(0, path)
    import imported_module
    sys.path.pop(0)

# --- entered from C ---------------------------------------------------------------------------------------------
signal.signal(signal.SIGUSR1, lambda *_: empty("signal handler"))
signal.raise_signal(signal.SIGUSR1)
sys.settrace(lambda frame, event, arg: (empty("trace function"), None)[1])
step(iter([1]))
sys.settrace(None)
sys.setprofile(lambda frame, event, arg: (empty("profile function"), None)[1])
step(iter([1]))
sys.setprofile(None)
gc.callbacks.append(lambda phase, info: empty("gc callback"))
gc.collect()
gc.callbacks.pop()


class Referent:
    pass


referent = Referent()
reference = weakref.ref(referent, lambda _: empty("weakref callback"))
del referent


class Cycle:
    def __del__(self):
        empty("__del__ from the collector")


cycle = Cycle()
cycle.me = cycle
del cycle
gc.collect()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        empty("autograd forward")
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        empty("autograd backward")
        return gradient * 2


leaf_tensor = torch.ones(4, requires_grad=True)
Square.apply(leaf_tensor).sum().backward()
layer = torch.nn.Linear(2, 2)
layer.register_forward_hook(lambda *_: (empty("forward hook"), None)[1])
layer.register_full_backward_hook(lambda *_: (empty("backward hook"), None)[1])
layer(torch.ones(1, 2, requires_grad=True)).sum().backward()
torch.utils.checkpoint.checkpoint(lambda t: empty("checkpoint").sum() * t, torch.ones(1, requires_grad=True), use_reentrant=False)
torch.utils.checkpoint.checkpoint(lambda t: t * t + len(empty("recomputed")), torch.ones(1, requires_grad=True), use_reentrant=False).sum().backward()


# --- threads ----------------------------------------------------------------------------------------------------
class Worker(threading.Thread):
    def run(self):
        torch.empty(Size("thread run()"), dtype=torch.uint8)


for thread in [threading.Thread(target=empty, args=("thread target",)), threading.Thread(target=outer), Worker(),
               threading.Thread(target=recursion, args=(40, "recursion in a thread"))]:
    thread.start()
    thread.join()
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(empty, ["thread pool"] * 4))

# --- deep stacks ------------------------------------------------------------------------------------------------
sys.setrecursionlimit(20_000)
for depth in [100, 125, 126, 127, 128, 129, 300, 5_000]:
    recursion(depth, f"recursion of {depth}")


@atexit.register
def at_exit():
    torch.empty(Size("atexit"), dtype=torch.uint8)
    for entry in seen.values():
        print(json.dumps(entry))
