"""A look at who holds the tensors, at the worst moments that a program can have: what it runs goes on as it was."""

import os

import harness
import nested
import pytest

pytest.importorskip("torch")
STRICT = {**os.environ, "PYTHONWARNINGS": "error"}  # as -W error

# What PyTorch's graph saved dies in its C++ code, which tells Python of it while its own pointer still leads there.
DIES_IN_BACKWARD = """
import weakref, torch
from gpumemprof._recorded.holders.moment import is_unsafe
from gpumemprof import why_alive
said = []
def dies(gone):
    assert is_unsafe()
    try:
        why_alive()
    except RuntimeError as error:
        said.append(str(error))
def saved(x):
    hidden = x * 2
    watched.append(weakref.ref(hidden, dies))
    return (hidden * hidden).sum()
watched = []
loss = saved(torch.ones(8, requires_grad=True))
assert not is_unsafe() and why_alive()
loss.backward()
assert said == ["tensors are being freed: why_alive() cannot look during a backward pass or a finalizer"], said
assert not is_unsafe()
"""

OTHER_THREAD = """
import threading, torch
from gpumemprof._recorded.holders.moment import is_unsafe
inside, done = threading.Event(), threading.Event()
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        inside.set()
        done.wait()
        return gradient * 2
thread = threading.Thread(target=lambda: Slow.apply(torch.ones(8, requires_grad=True)).sum().backward())
thread.start()
inside.wait()
assert is_unsafe()
done.set()
thread.join()
assert not is_unsafe()
"""

FINALIZERS = """
import weakref
from gpumemprof._recorded.holders.moment import is_unsafe
class Thing:
    def __del__(self):
        seen.append(is_unsafe())
class Other:
    pass
def called(*arguments):
    seen.append(is_unsafe())
seen = []
Thing()
other = Other()
references = [weakref.ref(other, called), weakref.ref(other, lambda gone: called()), weakref.ref(other, lambda gone, x=1: called(x))]
finalizer = weakref.finalize(Other(), called)
assert seen == [True, True], seen
del other
assert seen == [True] * 5, seen
assert not is_unsafe()
"""

# Up to Python 3.12 a frame has one dictionary of its variables, from which they come back after a trace function.
IN_A_TRACE_FUNCTION = """
import sys
from gpumemprof import why_alive
import torch
def traced(argument):
    kept, second = torch.ones(8), [argument]
    def inner():
        return kept
    return inner().sum().item(), second, argument
def trace(frame, event, argument):
    if frame.f_code is not traced.__code__:
        return None
    if event == "line" and frame.f_lineno == traced.__code__.co_firstlineno + 4:
        frame.f_locals["argument"] = "as the debugger set it"
    holders.append([one["path"] for one in why_alive()])
    return trace
holders = []
sys.settrace(trace)
got = traced("given")
sys.settrace(None)
assert got == (8.0, ["given"], "as the debugger set it"), got
assert any(path.startswith("kept in traced") for paths in holders for path in paths), holders
"""

VARIABLES = """
import sys
from gpumemprof._marks import variables
def outer(argument, cell, *rest, only=4, **named):
    free = "free"
    def inner(own, default=[5]):
        nonlocal free
        if False:
            unbound = 1
        deleted = 1
        del deleted
        held = cell
        return dict(variables(sys._getframe())), unbound if False else None
    mine = dict(variables(sys._getframe()))
    return mine, inner("own")[0]
def generated(count):
    for one in range(count):
        yield dict(variables(sys._getframe()))
mine, inside = outer(1, 2, 3, name=6)
assert callable(mine.pop("inner"))
assert mine == {"argument": 1, "cell": 2, "rest": (3,), "only": 4, "named": {"name": 6}, "free": "free"}, mine
assert inside == {"own": "own", "default": [5], "held": 2, "cell": 2, "free": "free"}, inside
assert list(generated(2)) == [{"count": 2, "one": 0}, {"count": 2, "one": 1}]
for wrong in (None, 1, outer):
    try:
        variables(wrong)
    except TypeError:
        continue
    raise AssertionError(wrong)
"""


@pytest.mark.parametrize(
    "program", [DIES_IN_BACKWARD, OTHER_THREAD, FINALIZERS, IN_A_TRACE_FUNCTION, VARIABLES],
    ids=["dies in backward", "other thread", "finalizers", "in a trace function", "variables"],
)  # fmt: skip
def test_the_program_goes_on_as_it_was(program):
    nested.execute([harness.PYTHON, "-c", program], env=STRICT).ok()


@pytest.mark.parametrize("what", ["compiled", "watched", "explained"])
def test_a_program_prints_the_same_when_it_is_looked_at_from_its_first_blocks_on(record, what):
    program = [harness.PROGRAMS / "unchanged.py", what]
    without = nested.execute([harness.PYTHON, *program], env=STRICT, timeout=300).ok()
    argv = [harness.PYTHON, "-W", "error", *program]
    with_us = record(argv, options=["--explain-leaks"], timeout=300).ok()
    assert with_us.stdout == without.stdout
    assert list(with_us.folder.glob("holders.*.json"))
