"""What importing one of the packages adds to a Python that does nothing."""
import os

import launch
import pairs
from measures.idle import in_turn, wall_ms
from rows import Row


def measure(size, package):
    plain, importing = [launch.PYTHON, "-c", "pass"], [launch.PYTHON, "-c", f"import {package}"]
    environment = dict(os.environ)
    with open(os.devnull, "wb") as file:
        null = file.fileno()
        for command in (plain, importing):  # the first run compiles the package's files
            wall_ms(command, environment, null)
        with_it, without = in_turn(size["python_pairs"], lambda: wall_ms(importing, environment, null),
                                   lambda: wall_ms(plain, environment, null))
    added = pairs.difference(with_it, without)
    return [Row(f"`import {package}` over `python -c pass`",
                f"{added.median:.1f} ms [{added.low:.1f}, {added.high:.1f}]", "≤ 25 ms", added.high <= 25,
                raw={"with_ms": with_it, "without_ms": without})]


def parts(size):
    return [lambda: measure(size, "gpumemprof"), lambda: measure(size, "tfmemprof")]
