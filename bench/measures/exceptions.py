"""C++ exceptions of the recorded program, with native stacks asked for."""
import random
import statistics

import launch
import pairs
from rows import Row, ratio_text

BOUND = 1.2


def throw_ns(command, is_recorded):
    result = launch.run_recorded(command, "both") if is_recorded else launch.run_json(command)
    return statistics.median(result["throw_ns"]), result["unwinder"]


def measure_case(title, options, count):
    command = launch.program("throw_catch.py", "--library", launch.helper("libthrow_catch.so"),
                             *options)
    chance = random.Random(3)
    taken = {True: [], False: []}
    unwinders = set()
    for _ in range(count):
        order = [True, False]
        chance.shuffle(order)
        for is_recorded in order:
            ns, unwinder = throw_ns(command, is_recorded)
            taken[is_recorded].append(ns)
            unwinders.add(unwinder)
    value = pairs.ratio(taken[True], taken[False])
    return [Row(f"C++ throw and catch through 10 frames, --stacks both, {title} "
                f"({statistics.median(taken[False]):,.0f} ns without)",
                ratio_text(value), f"< {BOUND}×", value.high < BOUND,
                raw={"recorded_ns": taken[True], "plain_ns": taken[False],
                     "unwinders": sorted(unwinders)})]


def parts(size):
    count = size["throw_pairs"]
    return [
        lambda: measure_case("in a process without PyTorch", [], count),
        lambda: measure_case("while recording PyTorch", ["--torch"], max(2, count // 2)),
    ]
