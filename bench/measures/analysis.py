"""How fast `analyze` reads a sealed recording, and in how much memory."""
import functools
import json
import os
import statistics

import launch
from measures.disk import memray_recording
from rows import Row

CASES = [
    ("10 k live blocks", ["--live", "10000", "--sizes", "classes"], 10e6, True),
    ("1 M live blocks of random sizes", ["--live", "1000000", "--sizes", "random"], 3e6, False),
]
MEMORY_BOUND_MIB = 200


def counted_events(stdout):
    counts = json.loads(stdout)["devices"][0]["events"]
    return counts["alloc"] + counts["free_completed"]


def analyze(path, events, repeats):
    """Whole commands from start to exit, on files that the page cache holds."""
    command = [launch.gpumemprof(), "analyze", "--format", "json", path]
    facts = []
    for _ in range(repeats):
        fact, stdout = launch.timed(command)
        facts.append(fact)
        if counted_events(stdout) != events:
            raise launch.Failed(f"analyze counted {counted_events(stdout):,} of {events:,} events")
    return facts


def memray_text(steps):
    """memray's shortest report on its own recording of the transformer."""
    try:
        with memray_recording(steps) as (file, records):
            fact, _ = launch.timed([launch.PYTHON, "-m", "memray", "summary", file])
    except (launch.Failed, ImportError) as failure:
        return f"memray not measured: {failure}"
    return (f"`memray summary` {records / fact['seconds'] / 1e6:.1f} M records/s, "
            f"{fact['peak_rss_kib'] / 1024:.0f} MiB ({records:,} records of the transformer)")


def measure_case(name, options, bound, is_main, size):
    events = size["analysis_events"]
    with launch.folder() as path:
        launch.run([launch.helper("make_recording"), path, "--events", str(events), *options])
        sealing, _ = launch.timed([launch.gpumemprof(), "seal", path])
        os.sync()
        facts = analyze(path, events, size["analysis_repeats"])
    speeds = [events / fact["seconds"] for fact in facts]
    peak_mib = max(fact["peak_rss_kib"] for fact in facts) / 1024
    speed = statistics.median(speeds)
    slowest, fastest = min(speeds) / 1e6, max(speeds) / 1e6
    rows = [Row(f"analyzing a sealed recording, {events:,} events, {name}",
                f"{speed / 1e6:.1f} M events/s ({slowest:.1f} to {fastest:.1f})",
                f"≥ {bound / 1e6:.0f} M events/s", speed >= bound, raw={"runs": facts})]
    if is_main:
        rows[0].peers.append(memray_text(size["disk_steps"] // 2))
    memory = Row(f"peak memory of analyzing it, {name}", f"{peak_mib:.0f} MiB",
                 section="budget" if is_main else "more")
    if is_main:
        memory.bound = f"< {MEMORY_BOUND_MIB} MB"
        memory.met = peak_mib * 1024 * 1024 < MEMORY_BOUND_MIB * 1e6
    rows.append(memory)
    cpu = statistics.median(events / fact["cpu_seconds"] for fact in facts)
    rows.append(Row(f"analyzing a sealed recording, by CPU time, {name}", f"{cpu / 1e6:.1f} M events/s", section="more"))
    rows.append(Row(f"sealing the recording, {name}",
                    f"{events / sealing['seconds'] / 1e6:.1f} M events/s, "
                    f"{sealing['peak_rss_kib'] / 1024:.0f} MiB", section="more"))
    return rows


def parts(size):
    return [functools.partial(measure_case, *case, size) for case in CASES]
