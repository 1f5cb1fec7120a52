"""A profiled call in Python: what it adds to a function that does nothing, and what it keeps."""
import launch
import pairs
from rows import ns_row

BOUNDS_NS = {"exact": 5_000, "polled": 20_000, "by CPUMemoryProfiler": 20_000, "by CPUMemoryProfiler, recorded": 20_000}


def one(kind, size):
    is_process = kind.startswith("by")
    options = [*(["--attach"] if kind == "exact" else []), *(["--process"] if is_process else [])]
    command = launch.program("profiled_call.py", "--rounds", size["hook_pairs"], *options)
    result = launch.run_recorded(command) if kind.endswith("recorded") else launch.run_json(command)
    if (result["basis"] == "exact") != (kind == "exact"):
        raise launch.Failed(f"a profiled call was to be {kind} and was {result['basis']}")
    what = f"a profiled call that does nothing, {kind}, with a million live objects"
    return ns_row(what, pairs.estimate(result["call_ns"]), BOUNDS_NS[kind], raw=result)


def parts(size):
    return [lambda kind=kind: [one(kind, size)] for kind in BOUNDS_NS]
