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
parser.add_argument("--process", action="store_true", help="by the profiler of the whole process")
parser.add_argument("--rounds", type=int, default=30)
parser.add_argument("--calls", type=int, default=5000)
parser.add_argument("--objects", type=int, default=1_000_000)
arguments = parser.parse_args()

import torch  # noqa: E402,F401 - part of any program that is profiled

if arguments.attach:
    gpumemprof.attach()
live = [[number] for number in range(arguments.objects)]
profiler = gpumemprof.CPUMemoryProfiler() if arguments.process else gpumemprof.GPUMemoryProfiler(device="cpu")


def nothing():
    pass


def loop_ns(function):
    begin = time.perf_counter_ns()
    for _ in range(arguments.calls):
        function()
    return (time.perf_counter_ns() - begin) / arguments.calls


def profiled_by_the_process():
    profiler.profile_function(nothing)


profiled = profiled_by_the_process if arguments.process else profiler.wrap(nothing)
loop_ns(profiled)  # the list of results fills up
before_bytes = read_rss_bytes()
taken = [loop_ns(profiled) - loop_ns(nothing) for _ in range(arguments.rounds)]
summary = profiler.get_summary()
print(json.dumps({"call_ns": taken, "basis": "process" if arguments.process else profiler.basis,
                  "kept_bytes": read_rss_bytes() - before_bytes,
                  "calls": summary["results_kept"] + summary["results_dropped"] if arguments.process
                  else summary["total_function_calls"]}))
