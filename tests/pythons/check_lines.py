"""Checks how often the line tracer says that each line began, under whatever Python runs this file: what an interpreter
announces of a line that was suspended differs from release to release. It needs nothing else:

    python3 check_lines.py PATH/line_tracer.py
"""

import asyncio
import contextlib
import importlib.util
import sys


class Hits:
    """A Listener: how often each line began, by function and by the line's number in it."""

    def __init__(self):
        self.seen = {}

    def sources(self):
        return [self]

    def begin(self):
        return None

    def record(self, code, line, _sources, _spans, hits):
        lines = self.seen.setdefault(code.co_name, {})
        number = line - code.co_firstlineno
        lines[number] = lines.get(number, 0) + hits


kept = []


def nothing(*_):
    return None


def argument():
    try:
        kept.append((yield nothing()) or nothing(1))
    except KeyError:
        kept.append(1)


def in_with():
    with contextlib.suppress(KeyError): kept.append((yield nothing()) or nothing(1))  # noqa: E701
    kept.append(2)


async def awaits():
    kept.append(await asyncio.sleep(0) or nothing(1))
    return kept


def loop():
    for _ in range(3):
        kept.append((yield nothing()) or nothing(1))


def two_branches():
    kept.append(nothing((yield nothing()) or nothing(1), nothing() or nothing(2)))


def plain():
    for _ in range(3):
        kept.append(nothing(nothing() or nothing(1), nothing(2) or nothing(3), nothing() or nothing()))


def loop_on_a_line():
    for one in (yield nothing()) or (1, 2, 3): kept.append(one)  # noqa: E701


async def loop_that_awaited():
    for one in await asyncio.sleep(0, (1, 2, 3)): kept.append(one)  # noqa: E701


def while_on_a_line(left):
    while left: left = left[1:] or nothing()  # noqa: E701


def resume(function, throw):
    made = function()
    next(made)
    with contextlib.suppress(StopIteration, KeyError):
        while True:
            made.throw(KeyError) if throw else made.send(None)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    spec = importlib.util.spec_from_file_location("line_tracer", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hits = Hits()
    tracer = module.LineTracer(hits)
    generators = (argument, in_with, loop, two_branches, loop_on_a_line)
    for function in (*generators, awaits, plain, loop_that_awaited, while_on_a_line):
        tracer.add(function.__code__)
    for function in generators:
        resume(function, throw=False)
    for function in (argument, in_with):
        resume(function, throw=True)
    asyncio.run(awaits())
    asyncio.run(loop_that_awaited())
    plain()
    while_on_a_line([1, 2, 3])
    tracer.remove()
    # Two runs of the first two, and the exception of the second run alone goes to the handler.
    expected = {
        "argument": {1: 2, 2: 2, 3: 1, 4: 1},
        "in_with": {1: 2, 2: 2},
        "awaits": {1: 1, 2: 1},
        "loop": {1: 4, 2: 3},
        "two_branches": {1: 1},
        "plain": {1: 4, 2: 3},
        # sys.settrace announces every jump back, sys.monitoring not those within one line.
        "loop_on_a_line": {1: 4 if sys.version_info < (3, 12) else 1},
        "loop_that_awaited": {1: 4 if sys.version_info < (3, 12) else 1},
        # It jumps back where there is another round, and up to 3.9 to find that there is none.
        "while_on_a_line": {1: 1 if sys.version_info >= (3, 12) else 3 if sys.version_info >= (3, 10) else 4},
    }
    print(f"Python {sys.version.split()[0]}")
    for name, lines in expected.items():
        seen = hits.seen.get(name)
        print(f"{'ok    ' if seen == lines else 'FAILED'}  {name}" + ("" if seen == lines else f": {seen}, not {lines}"))
    failed = sum(hits.seen.get(name) != lines for name, lines in expected.items())
    print(f"{len(expected) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
