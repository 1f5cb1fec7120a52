"""Exact counting: one event with it on against the same with it off, and a scope's begin and end."""
import os
import statistics

import launch
import pairs
from rows import Row, ns_text

VARIANTS = {
    "on": ["--counting"],
    "in one scope": ["--counting", "--scopes", "1"],
    "in four nested scopes": ["--counting", "--scopes", "4"],
}


def probe():
    """The library that is preloaded; GPUMEMPROF_PROBE names another."""
    path = os.path.join(launch.ROOT, ".venv", "lib", "libgpumemprof_probe.so")
    return launch.made(os.environ.get("GPUMEMPROF_PROBE", path))


def one(rounds, options):
    command = launch.program("scope_loop.py", "--library", launch.helper("libhook_loop.so"),
                             "--rounds", rounds, *options)
    return launch.run_json(["env", f"LD_PRELOAD={probe()}", *command])


def measure(size):
    """Counting is for a process's life, so each value is a process; the four take turns."""
    rounds = max(3, size["hook_pairs"] // 3)
    taken = {name: [] for name in ("off", *VARIANTS)}
    scopes, context_scopes = [], []
    for _ in range(5):
        for name in taken:
            result = one(rounds, VARIANTS.get(name, []))
            taken[name].append(statistics.median(result["event_ns"]))
            if name == "on":
                scopes.append(statistics.median(result["scope_ns"]))
                context_scopes.append(statistics.median(result["context_scope_ns"]))
    rows = [Row(f"one event, exact counting {name}, more than off ({statistics.median(taken['off']):.0f} ns)",
                ns_text(pairs.difference(taken[name], taken["off"])), section="more",
                raw={"on_ns": taken[name], "off_ns": taken["off"]})
            for name in VARIANTS]
    rows.append(Row("a scope's begin and end", ns_text(pairs.estimate(scopes)), section="more",
                    raw={"ns": scopes}))
    rows.append(Row("a scope's begin and end, with the current context",
                    ns_text(pairs.estimate(context_scopes)), section="more",
                    raw={"ns": context_scopes}))
    return rows
