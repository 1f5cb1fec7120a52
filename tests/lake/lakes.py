"""Runs written into lakes, and a plain second way of counting what the tables say. Shares no code with the queries."""

import collections
import json

import harness
import nested
import pyarrow.parquet as pq

REAL = harness.ROOT.parent / "shared" / "snapshots"
FIXTURES = harness.ROOT / "tests" / "fixtures" / "recordings"
RECORDINGS = sorted(FIXTURES.glob("*.gmp")) + sorted((harness.ROOT / "tests" / "compat").glob("*-sealed.gmp"))
SNAPSHOTS = sorted(FIXTURES.glob("*.pickle"))
REAL_SNAPSHOTS = sorted(path for path in REAL.glob("*") if path.suffix in (".pickle", ".pkl")) if REAL.exists() else []

# Two layers, three steps that are told, and a tensor that comes and goes after them.
TRAIN = """
import torch
import gpumemprof

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())


def train():
    optimizer.zero_grad()
    model(torch.ones(32, 64)).sum().backward()
    optimizer.step()


for _ in range(3):
    train()
    gpumemprof.step()
spike = torch.empty(3_000_001, dtype=torch.uint8)
del spike
"""


def record_training(folder, name="training"):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"{name}.py"
    program.write_text(TRAIN)
    return nested.record(folder / name, [harness.PYTHON, program]).ok().folder


def run(argv, **popen):
    return harness.execute([harness.COMMAND, *argv], **popen)


def export(path, lake, *options):
    """The folder of the run that was added to the lake."""
    before = set(lake.iterdir()) if lake.exists() else set()
    run(["export", path, "--to", "parquet", "-o", lake, "--no-seal", *options]).ok()
    added = set(lake.iterdir()) - before
    return added.pop() if added else None


def ask(query, *paths, options=()):
    """The rows of an answer."""
    return json.loads(run(["sql", *paths, query, "--format", "json", *options]).ok().stdout)


def table(run_folder, name):
    files = sorted(run_folder.glob(f"{name}.parquet")) + sorted(run_folder.glob(f"{name}.*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def level_after_each(intervals):
    """{event: live bytes after it}, of one memory."""
    change = collections.Counter()
    for row in intervals:
        change[row["birth_event"]] += row["size_bytes"]
        if row["death_event"] is not None:
            change[row["death_event"]] -= row["size_bytes"]
    levels, live = {}, 0
    for event in sorted(change):
        live += change[event]
        levels[event] = live
    return levels


def live_at(intervals, event):
    return [row for row in intervals
            if row["birth_event"] <= event and (row["death_event"] is None or row["death_event"] > event)]


def category_at(row, earlier, event):
    """What an allocation was: `earlier` has the rows of `categories` by interval."""
    for was in earlier.get(row["interval"], ()):
        if was["from_event"] <= event < was["until_event"]:
            return was["category"]
    return row["category"]


def reported(report, rank):
    """What `analyze` says of a memory; None where it does not tell of it."""
    return next((device for device in report["devices"]
                 if device["device"] == rank["device"] and device["process"] in (rank["pid"], None)), None)


def peak_of(device):
    peak = device["peak"]
    return peak["requested_bytes"] if peak["basis"] == "requested" else peak["allocated_bytes"]


def analysis(path):
    return json.loads(run(["analyze", path, "--format", "json", "--no-seal"]).ok().stdout)
