"""Runs that tests of the page look at, with what `analyze` says of them."""

import json
import subprocess

import harness

REAL = harness.ROOT.parent / "shared" / "snapshots"
RECORDINGS = sorted((harness.ROOT / "tests" / "fixtures" / "recordings").glob("*.gmp"))
SNAPSHOTS = sorted((harness.ROOT / "tests" / "fixtures" / "recordings").glob("*.pickle")) + (
    sorted(p for p in REAL.glob("*") if p.suffix in (".pickle", ".pkl")) if REAL.exists() else [])
RUNS = RECORDINGS + SNAPSHOTS


def analysis(path):
    answer = harness.execute([harness.COMMAND, "analyze", "--format", "json", path])
    return json.loads(answer.ok().stdout)


def device_of(report, name):
    """What `analyze` says of a device of the page; None where it does not tell of it."""
    return next((device for device in report["devices"] if device["device"] == name), None)


def peak_bytes(device):
    """As the page counts: what was asked for where that is known."""
    peak = device["peak"]
    return peak["requested_bytes"] if peak["basis"] == "requested" else peak["allocated_bytes"]
