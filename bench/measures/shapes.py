"""Files of unusual shapes: what a command costs per event, or per byte, against the same command on a plain file.

A look at all of something at every event shows as a ratio that grows with the file; what is left at a fixed size is
the price of caches that hold less: beside each row stands that of a bare loop over the same events (bare_loop.cc).
CPU time, user and system, so that other programs of the machine weigh little.
"""
import functools
import os

import launch
from rows import Row

MOST = 2
SNAPSHOT_COMMANDS = ("analyze", "whatif", "diff", "export --to jsonl", "export --to perfetto")
RECORDING_COMMANDS = ("analyze", "diff", "export --to jsonl", "export --to perfetto")
# (shape of make_shape.py, what it is, the unit)
SNAPSHOTS = [
    ("segments", "a segment for every tenth event", "event"),
    ("live", "nine of ten events leave a live block", "event"),
    ("holes", "a free piece for every sixth event", "event"),
    ("stacks", "a stack of its own for every event", "event"),
    ("modules", "10,000 files", "byte"),
    ("deep", "stacks of 1,000 frames", "byte"),
]
# (options of make_recording, what it is, the unit)
PLAIN = ("--live", "10000")
RECORDINGS = [
    (("--live", "1000000", "--sizes", "random"), "1 M live blocks of random sizes", "event"),
    ((*PLAIN, "--stacks", "1000000"), "1 M stacks", "byte"),
    ((*PLAIN, "--stacks", "5000", "--modules", "10000"), "10,000 native modules", "event"),
    ((*PLAIN, "--stacks", "5000", "--frames", "128"), "stacks of 128 frames", "event"),
    ((*PLAIN, "--processes", "4096"), "4,096 processes", "byte"),
]


def cpu_seconds(command, path):
    """Of the command, with its output thrown away."""
    words = command.split()
    inputs = [path, path] if words[0] == "diff" else [path]
    options = words[1:] + ([] if words[0] == "seal" else ["--output", os.devnull])
    fact, _ = launch.timed([launch.gpumemprof(), words[0], *inputs, *options])
    return fact["cpu_seconds"]


BARE = "bare loop"


def costs(commands, path, units, repeats):
    """Seconds a unit of each command: the least of several runs, the first of which also warms the page cache.

    And those of a bare loop over the events, an event.
    """
    bare = launch.run_json([launch.helper("bare_loop"), path])
    out = {BARE: bare["seconds"] / bare["events"]}
    for command in commands:
        out[command] = min(cpu_seconds(command, path) for _ in range(repeats)) / units
    return out


def row(kind, what, unit, plain, unusual):
    ratios = sorted(((unusual[command] / plain[command], command) for command in plain if command != BARE),
                    reverse=True)
    bare = (f"a bare loop {unusual[BARE] / plain[BARE]:.2f}× "
            f"({plain[BARE] * 1e9:.0f} → {unusual[BARE] * 1e9:.0f} ns an event)")
    return Row(f"a {kind} with {what}, CPU time per {unit} ÷ that of a plain one, the worst command",
               ", ".join(f"{ratio:.2f}× `{command}`" for ratio, command in ratios), f"≤ {MOST}×",
               ratios[0][0] <= MOST, peers=[bare], raw=dict(unusual))


def bytes_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(entry.stat().st_size for entry in os.scandir(path))


def units(made, unit):
    return made["events"] if unit == "event" else made["bytes"]


@functools.lru_cache
def snapshot_costs(shape, unit, events, repeats):
    with launch.folder() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        made = launch.run_json(launch.program("make_shape.py", path, shape, "--events", events))
        return costs(SNAPSHOT_COMMANDS, path, units(made, unit), repeats)


@functools.lru_cache
def recording_costs(options, unit, events, repeats):
    """As costs(); each run of `seal` has a recording of its own, as a second one finds nothing to do."""
    seals = []
    for _ in range(repeats):
        with launch.folder() as path:
            launch.run([launch.helper("make_recording"), path, "--events", str(events), *options])
            count = units({"events": events, "bytes": bytes_of(path)}, unit)  # before it is sealed
            seals.append(cpu_seconds("seal", path) / count)
            if len(seals) == repeats:
                return {"seal": min(seals), **costs(RECORDING_COMMANDS, path, count, repeats)}


def measure(kind, costs_of, plain, case, size):
    shape, what, unit = case
    how = (unit, size["shape_events"], size["analysis_repeats"])
    return [row(kind, what, unit, costs_of(plain, *how), costs_of(shape, *how))]


def parts(size):
    return ([functools.partial(measure, "snapshot", snapshot_costs, "plain", case, size) for case in SNAPSHOTS]
            + [functools.partial(measure, "recording", recording_costs, PLAIN, case, size) for case in RECORDINGS])
