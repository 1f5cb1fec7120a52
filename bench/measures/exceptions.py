"""C++ exceptions of the recorded program, with native stacks asked for."""
import statistics

import launch
import pairs
from measures.idle import in_turn
from rows import Row, ratio_text

BOUND = 1.2


def throw_ns(command, is_recorded):
    result = launch.run_recorded(command, "both") if is_recorded else launch.run_json(command)
    return statistics.median(result["throw_ns"]), result["unwinder"]


def measure_case(title, options, count):
    command = launch.program("throw_catch.py", "--library", launch.helper("libthrow_catch.so"),
                             *options)
    with_it, without = in_turn(count, lambda: throw_ns(command, True), lambda: throw_ns(command, False))
    recorded, plain = [ns for ns, _ in with_it], [ns for ns, _ in without]
    value = pairs.ratio(recorded, plain)
    return [Row(f"C++ throw and catch through 10 frames, --stacks both, {title} "
                f"({statistics.median(plain):,.0f} ns without)",
                ratio_text(value), f"< {BOUND}×", value.high < BOUND,
                raw={"recorded_ns": recorded, "plain_ns": plain,
                     "unwinders": sorted({unwinder for _, unwinder in with_it + without})})]


def parts(size):
    count = size["throw_pairs"]
    return [
        lambda: measure_case("in a process without PyTorch", [], count),
        lambda: measure_case("while recording PyTorch", ["--torch"], max(2, count // 2)),
    ]
