"""A profiled call in Python: what it adds to a function that does nothing, and what it keeps."""
import launch
import pairs
from rows import ns_row

BOUNDS_NS = {"exact": 5_000, "polled": 20_000}


def one(kind, size):
    options = ["--rounds", size["hook_pairs"], *(["--attach"] if kind == "exact" else [])]
    result = launch.run_json(launch.program("profiled_call.py", *options))
    if (result["basis"] == "exact") != (kind == "exact"):
        raise launch.Failed(f"a profiled call was to be {kind} and was {result['basis']}")
    what = f"a profiled call that does nothing, {kind}, with a million live objects"
    return ns_row(what, pairs.estimate(result["call_ns"]), BOUNDS_NS[kind], raw=result)


def parts(size):
    return [lambda: [one("exact", size)], lambda: [one("polled", size)]]
