"""What the tests of recorded TensorFlow programs share."""
import functools
import importlib.util
import json
import os
import tempfile
from pathlib import Path

import pytest

import harness
import nested

OPERATION = "<tensorflow> "
MADE_BY = "<tensorflow> operation made by"


def is_installed(package):
    """A folder of that name on the path, such as the one of these tests, is none."""
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None


needs_tensorflow = pytest.mark.skipif(
    not is_installed("tensorflow"),
    reason="TensorFlow is not installed in this Python: pip install tensorflow-cpu")


@functools.cache
def site():
    """A folder that stands in for the .pth file of an environment."""
    folder = nested.NESTS.enter_context(tempfile.TemporaryDirectory(prefix="gpumemprof-site-"))
    (Path(folder) / "sitecustomize.py").write_text((harness.ROOT / "python" / "gpumemprof.pth").read_text())
    return folder


def environment(**more):
    """That of a program which has our packages."""
    path = os.pathsep.join([site(), str(harness.ROOT / "python")])
    return dict(os.environ, PYTHONPATH=path, TF_CPP_MIN_LOG_LEVEL="3", **more)


def record(folder, argv):
    """As harness.record() of a program in a process that has TensorFlow already."""
    return nested.record(folder, argv, imports=("tensorflow",), env=environment(), timeout=300)


def execute(argv, **more):
    """As harness.execute() of such a program."""
    return nested.execute(argv, imports=("tensorflow",), env=environment(**more), timeout=300)


def last_json(done):
    return json.loads(done.ok().stdout.splitlines()[-1])


def operation(event):
    """The name of the operation that an event is for; empty where it has none."""
    stack = event.get("stack", [])
    return stack[0].removeprefix(OPERATION) if stack and stack[0].startswith(OPERATION) else ""


def of_tensorflow(events, regions=False):
    """Events of TensorFlow's allocators: blocks, or the regions that pools are made of."""
    return [e for e in events if e["device"].startswith("tensorflow:") and (e["layer"] == "driver") == regions]


def unmatched_frees(events):
    live, count = set(), 0
    for event in events:
        key = event["device"], event["address"]
        if event["action"] == "alloc":
            assert key not in live, event
            live.add(key)
        elif key in live:
            live.remove(key)
        else:
            count += 1
    return count
