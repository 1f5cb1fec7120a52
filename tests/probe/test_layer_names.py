"""gpumemprof_set_layer: the name is the innermost frame of what the thread allocates, and of nothing else."""
import os

import harness
import nested

PROGRAM = """
import ctypes, threading, torch
set_layer = ctypes.CDLL(None).gpumemprof_set_layer
names = [b"model/one", b"model/two", b"n" * 1500, "Schicht \\u00fc".encode()]
def make(size):
    return torch.empty(size, dtype=torch.uint8)
kept = [make(1001)]
set_layer(names[0]); kept.append(make(1002))
other = threading.Thread(target=lambda: kept.append(make(1003))); other.start(); other.join()
set_layer(names[1]); kept.append(make(1004))
set_layer(b""); kept.append(make(1005))
set_layer(names[2]); kept.append(make(1006))
set_layer(names[3]); kept.append(make(1007))
set_layer(None); kept.append(make(1008))
set_layer(names[0]); kept.append(make(1009))
"""


def test_a_name_is_of_its_thread_until_the_next_one(tmp_path):
    found = harness.by_size(harness.events(nested.record(tmp_path / "r", [harness.PYTHON, "-c", PROGRAM]).ok().folder))
    names = {}
    for size in range(1001, 1010):
        (event,) = found[size]
        stack = event["stack"]
        names[size] = stack[0].removeprefix("<layer> ") if stack[0].startswith("<layer>") else None
        assert sum(line.startswith("<layer>") for line in stack) == (names[size] is not None)
        assert any("make" in line for line in stack)
    assert names == {1001: None, 1002: "model/one", 1003: None, 1004: "model/two", 1005: None, 1006: "n" * 1000,
                     1007: "Schicht ü", 1008: None, 1009: "model/one"}


def test_without_stacks_there_are_no_names(record):
    done = record([harness.PYTHON, "-c", PROGRAM], ["--stacks", "none"]).ok()
    assert not any(event.get("stack") for event in harness.events(done.folder) if event["size_bytes"] == 1001)


MANY = """
import ctypes, os, sys
from gpumemprof._recorded import keras as keras_layers
keras_layers.MAX_NAMES = 3
names = [keras_layers._name(path) for path in ("a", "b/" * 2000, "c", "d", "e", "a")]
assert names[0] == names[5] == b"a" and len(names[1]) == 1000 and names[3] == names[4] != names[2], names
assert len(keras_layers._names) == 4
print(names[3].decode())
"""


def test_a_program_that_makes_names_on_the_way_keeps_a_bounded_number(tmp_path):
    env = dict(os.environ, PYTHONPATH=str(harness.ROOT / "python"))
    done = harness.execute([harness.PYTHON, "-c", MANY], env=env).ok()
    assert done.stdout.decode().strip() == "(a layer beyond the first 20000 names)"
