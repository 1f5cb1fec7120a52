"""Allocations from every kind of frame that Python has."""

import asyncio
import contextlib
import functools
import itertools
import threading

import torch
from witness import allocate, report

sizes = itertools.count(200_003, 2)


def plain():
    return allocate(next(sizes))


def over_several_lines():
    return [
        0,
        allocate(
            next(sizes),
        ),
        1,
    ]


class Thing:
    at_class_level = allocate(next(sizes))

    def method(self):
        return allocate(next(sizes))

    @classmethod
    def of_class(cls):
        return allocate(next(sizes))

    @property
    def computed(self):
        return allocate(next(sizes))

    def __add__(self, other):
        return allocate(next(sizes))

    def __call__(self):
        return allocate(next(sizes))


def generator():
    yield allocate(next(sizes))
    yield allocate(next(sizes))


def delegating():
    yield from generator()


async def coroutine():
    await asyncio.sleep(0)
    return allocate(next(sizes))


async def agenerator():
    for _ in range(2):
        yield allocate(next(sizes))


async def asynchronous():
    await coroutine()
    await asyncio.gather(coroutine(), coroutine())
    async for _ in agenerator():
        pass


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@decorated
@decorated
def inner():
    return (lambda: allocate(next(sizes)))()


@contextlib.contextmanager
def context():
    allocate(next(sizes))
    yield
    allocate(next(sizes))


def handling():
    try:
        raise ValueError
    except ValueError:
        allocate(next(sizes))
    finally:
        allocate(next(sizes))


class Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        allocate(next(sizes))
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        allocate(next(sizes))
        return gradient * 2


plain()
over_several_lines()
thing = Thing()
thing.method(), Thing.of_class(), thing.computed, thing + thing, thing()
list(delegating())
asyncio.run(asynchronous())
inner()
[allocate(next(sizes)) for _ in range(2)]
{allocate(next(sizes)): 0 for _ in range(2)}
list(allocate(next(sizes)) for _ in range(2))
sorted([3, 1, 2], key=lambda _: allocate(next(sizes)))
list(map(lambda _: allocate(next(sizes)), range(2)))
functools.reduce(lambda a, b: allocate(next(sizes)), range(3))
functools.partial(plain)()
with context():
    plain()
handling()
exec(compile("\n\nallocate(next(sizes))\ndef g():\n  return allocate(next(sizes))\ng()", "made.py", "exec"))
eval("allocate(next(sizes))")
Multiply.apply(torch.ones(1, requires_grad=True)).backward()
thread = threading.Thread(target=plain)
thread.start()
thread.join()
thing.__class__.__del__ = lambda self: allocate(next(sizes))
del thing
report()
