"""A profiled call of a function that does nothing, with a million live objects: nanoseconds over the plain call.

Prints one line: {"call_ns": [one value a round], "basis": …, "kept_bytes": …}.
"""
import argparse
import json
import time

import gpumemprof
from gpumemprof.counters import read_rss_bytes

parser = argparse.ArgumentParser()
parser.add_argument("--attach", action="store_true")
parser.add_argument("--rounds", type=int, default=30)
parser.add_argument("--calls", type=int, default=5000)
parser.add_argument("--objects", type=int, default=1_000_000)
arguments = parser.parse_args()

import torch  # noqa: E402,F401 - part of any program that is profiled

if arguments.attach:
    gpumemprof.attach()
live = [[number] for number in range(arguments.objects)]
profiler = gpumemprof.GPUMemoryProfiler(device="cpu")


def nothing():
    pass


def loop_ns(function):
    begin = time.perf_counter_ns()
    for _ in range(arguments.calls):
        function()
    return (time.perf_counter_ns() - begin) / arguments.calls


profiled = profiler.wrap(nothing)
loop_ns(profiled)  # the list of results fills up
before_bytes = read_rss_bytes()
taken = [loop_ns(profiled) - loop_ns(nothing) for _ in range(arguments.rounds)]
print(json.dumps({"call_ns": taken, "basis": profiler.basis, "kept_bytes": read_rss_bytes() - before_bytes,
                  "calls": profiler.get_summary()["total_function_calls"]}))
