"""Generated code whose code objects die at once, so that the next one lands on the same address.

Prints how often an address really came again: where that is 0 the variant proves nothing.
"""
import collections
import json
import sys
import threading

import torch

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 1000


def compile_function(source, file_name):
    namespace = {"torch": torch}
    exec(compile(source, file_name, "exec"), namespace)
    return namespace.pop("f")  # no cycle is left, so `del f` ends it at once


def reused(seen, function):
    seen[id(function.__code__)] += 1


def report(variant, seen):
    print(json.dumps({"variant": variant, "address_reused": sum(seen.values()) - len(seen)}))


def own_line_and_file(base, variant):
    seen = collections.Counter()
    for i in range(COUNT):
        f = compile_function(
            "\n" * i + f"def f(): return torch.empty({base}+{i}, dtype=torch.uint8)", f"{variant}_{i}.py")
        reused(seen, f)
        f()
        del f
    report(variant, seen)


def same_line_other_file(base):
    """Same text, same first line, same names: only the file name tells them apart."""
    seen = collections.Counter()
    for i in range(COUNT):
        f = compile_function("def f(n): return torch.empty(n, dtype=torch.uint8)", f"file_{i:04}.py")
        reused(seen, f)
        f(base + i)
        del f
    report("file", seen)


def same_file_other_function(base):
    seen = collections.Counter()
    for i in range(COUNT):
        f = compile_function(f"def g{i:04}(n): return torch.empty(n, dtype=torch.uint8)\nf = g{i:04}", "same_file.py")
        reused(seen, f)
        f(base + i)
        del f
    report("function", seen)


def same_first_line_other_body(base):
    """File, name and first line are equal; only the table of lines is another."""
    seen = collections.Counter()
    for i in range(COUNT):
        f = compile_function("def f(n):" + "\n" * (i + 1) + " return torch.empty(n, dtype=torch.uint8)", "same_first.py")
        reused(seen, f)
        f(base + i)
        del f
    report("body", seen)


def dies_and_comes_again(base):
    """A known stack is captured, dies, another one takes its address, and the first comes again."""
    seen = collections.Counter()
    for i in range(COUNT):
        name, gap = ("a.py", 0) if i % 2 == 0 else ("b.py", 7)
        f = compile_function("\n" * gap + "def f(n): return torch.empty(n, dtype=torch.uint8)", name)
        reused(seen, f)
        f(base + i)
        del f
    report("again", seen)


def inner_changes_under_one_outer(base):
    """The callers stay alive and warm; only the innermost code object is another one each time."""
    def outer(f, n, depth):
        return outer(f, n, depth - 1) if depth else f(n)

    seen = collections.Counter()
    for i in range(COUNT):
        f = compile_function("\n" * (i % 50) + "def f(n): return torch.empty(n, dtype=torch.uint8)", f"inner_{i}.py")
        reused(seen, f)
        outer(f, base + i, 20)
        del f
    report("inner", seen)


def outer_changes_over_one_inner(base):
    """The allocating function is one and the same; its caller is generated."""
    def inner(n):
        return torch.empty(n, dtype=torch.uint8)

    seen = collections.Counter()
    for i in range(COUNT):
        f = compile_function("\n" * (i % 50) + "def f(inner, n): return inner(n)", f"outer_{i}.py")
        reused(seen, f)
        f(inner, base + i)
        del f
    report("outer", seen)


own_line_and_file(1000, "main")
same_line_other_file(10_000)
same_file_other_function(20_000)
same_first_line_other_body(30_000)
dies_and_comes_again(40_000)
inner_changes_under_one_outer(50_000)
outer_changes_over_one_inner(60_000)
thread = threading.Thread(target=own_line_and_file, args=(70_000, "thread"))
thread.start()
thread.join()
