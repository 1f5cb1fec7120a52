"""Snapshots of PyTorch's memory: how fast they are read and explained, and in how much memory."""
import functools
import json
import os
import statistics

import launch
from rows import Row

# (name, options of make_snapshot, bound on peak memory ÷ file)
CASES = [
    ("training with C++ frames", [], 0.3),
    ("Python frames alone", ["--python-only"], 0.5),
]
PARSE_MB_S = 500
ANALYZE_MB_S = 350


def spread(speeds):
    return f"{statistics.median(speeds):.0f} MB/s ({min(speeds):.0f} to {max(speeds):.0f})"


def check(answer, made):
    counts = answer["devices"][0]["events"]
    if counts["alloc"] != made["allocs"]:
        raise launch.Failed(f"analyze counted {counts['alloc']:,} of {made['allocs']:,} allocations")


def peer_text(path, made):
    """Once: it takes half a minute, and gigabytes."""
    fact, stdout = launch.timed(launch.program("load_snapshot.py", path))
    answer = json.loads(stdout)
    if answer["events"]["alloc"] != made["allocs"]:
        raise launch.Failed("pickle.load gave another number of allocations")
    megabytes = made["bytes"] / 1e6
    return (f"`pickle.load` {megabytes / answer['load_seconds']:.0f} MB/s; with the same analysis in Python "
            f"{megabytes / answer['seconds']:.0f} MB/s, {fact['peak_rss_kib'] * 1024 / made['bytes']:.1f}× the file")


def measure_case(name, options, memory_bound, size):
    with launch.folder() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        made = launch.run_json(launch.program("make_snapshot.py", path, "--bytes", size["snapshot_bytes"], *options))
        megabytes = made["bytes"] / 1e6
        parsed, analyzed = [], []
        for _ in range(size["analysis_repeats"]):  # in turn, so that a noisy moment hits both
            parsed.append(launch.run_json([launch.helper("parse_snapshot"), path]))
            fact, stdout = launch.timed([launch.gpumemprof(), "analyze", "--format", "json", path])
            check(json.loads(stdout), made)
            analyzed.append(fact)
        peer = peer_text(path, made)
    what = f"{megabytes / 1e3:.2g} GB snapshot, {name} ({made['bytes'] / made['events']:.0f} B an event)"
    parse = [megabytes / run["seconds"] for run in parsed]
    whole = [megabytes / fact["seconds"] for fact in analyzed]
    memory = max(fact["peak_rss_kib"] for fact in analyzed) * 1024 / made["bytes"]
    cpu = [megabytes / fact["cpu_seconds"] for fact in analyzed]
    return [
        Row(f"parsing a {what}", spread(parse), f"≥ {PARSE_MB_S} MB/s",
            statistics.median(parse) >= PARSE_MB_S, [peer], raw={"runs": parsed}),
        Row(f"`analyze` of a {what}", spread(whole), f"≥ {ANALYZE_MB_S} MB/s",
            statistics.median(whole) >= ANALYZE_MB_S, raw={"runs": analyzed}),
        Row(f"peak memory of `analyze` ÷ file size, {name}", f"{memory:.2f}×", f"≤ {memory_bound}×", memory <= memory_bound),
        Row(f"`analyze` by CPU time, {name}", f"{statistics.median(cpu):.0f} MB/s", section="more"),
    ]


def parts(size):
    return [functools.partial(measure_case, *case, size) for case in CASES]
