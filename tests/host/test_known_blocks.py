"""`run --host`: what a program takes from malloc and mmap, against sizes that are known from the program's text."""
import collections
import json

import pytest

import harness
from host_programs import compiled, live, of, sizes

KB = 1024
PAGE = 4096


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = tmp_path_factory.mktemp("known")
    data = folder / "data"
    data.write_bytes(b"x" * 70000)
    program = compiled(folder, "host_known")
    harness.record(folder / "r", [program, data, "fork"], ["--host"]).ok()
    return folder / "r", harness.events(folder / "r"), str(data)


def parent_of(events):
    return harness.pid_of(events[0])


def test_blocks_of_malloc(known):
    _, events, _ = known
    pid = parent_of(events)
    # The refused realloc leaves the block: its end and its beginning again.
    assert sizes(events, "malloc", pid) == [100003, 140077, 300007, 400009, 500032, 600011, 65536, 600011]
    assert live([e for e in events if harness.pid_of(e) == pid], "malloc") == [65536, 600011]
    refused = [e["size_bytes"] for e in of(events, "malloc") if e["action"] == "oom"]
    assert refused == [(2**64 - 1) // 2]


def test_maps_that_are_cut_moved_and_replaced(known):
    _, events, _ = known
    assert live(events, "anonymous maps") == sorted(
        [256 * KB, 128 * KB, 64 * KB, 448 * KB, 8192 * KB])
    assert 4096 * KB not in sizes(events, "anonymous maps"), "addresses that nobody may touch are no memory"


def test_a_map_names_its_file(known):
    _, events, data = known
    (one,) = [e for e in of(events, "file maps") if e["action"] == "alloc"]
    assert one["size_bytes"] == -(-70000 // PAGE) * PAGE
    assert one["stack"][0].split(" ")[-1] == data or data in one["stack"][0]


def test_a_forked_child_has_its_own_blocks_alone(known):
    _, events, _ = known
    children = {harness.pid_of(e) for e in events} - {parent_of(events)}
    (child,) = children
    assert [(e["action"], e["size_bytes"]) for e in events if harness.pid_of(e) == child] == [("alloc", 900001)]


def test_the_report_shows_lines_and_says_what_is_left_out(known):
    folder, _, _ = known
    text = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode()
    assert "host malloc" in text and "host anonymous maps" in text and "host file maps" in text
    assert "below 64 KiB are not recorded" in " ".join(text.split())


PYTHON_PROGRAM = """
import json, os, threading
import numpy as np

def keep():
    return [np.ones((n, 1024)) for n in (11, 13, 17, 19)]          # 8 KiB a row

def drop():
    for n in (23, 29, 31):
        np.zeros(n * 100_003, dtype=np.uint8)

kept = keep()
drop()
def work(i):
    np.full(70_001 + i, 1, dtype=np.uint8)
threads = [threading.Thread(target=work, args=(i,)) for i in range(40)]
for t in threads: t.start()
for t in threads: t.join()
"""


def test_numpy_by_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PYTHON_PROGRAM)
    harness.record(tmp_path / "r", [harness.PYTHON, program], ["--host"]).ok()
    made = collections.defaultdict(list)
    for event in of(harness.events(tmp_path / "r"), "malloc"):
        if event["action"] == "alloc":
            for frame in harness.frames(event):
                if frame.file == str(program) and frame.function in ("keep", "drop", "work"):
                    made[frame.function].append(event["size_bytes"])
    assert made["keep"] == [n * 8192 for n in (11, 13, 17, 19)]
    assert made["drop"] == [n * 100_003 for n in (23, 29, 31)]
    assert sorted(made["work"]) == [70_001 + i for i in range(40)]
    report = harness.analysis(tmp_path / "r")
    malloc = next(d for d in report["devices"] if d["device"] == "host malloc")
    assert sum(h["bytes"] for h in malloc["holders_at_peak"] if "keep" in json.dumps(h)) == (11 + 13 + 17 + 19) * 8192


TORCH_PROGRAM = """
import torch
tensors = [torch.ones(n, 1024) for n in (37, 41, 43)]       # 4 KiB a row
del tensors
import numpy as np
array = np.ones(4_000_001, dtype=np.uint8)
tensor = torch.from_numpy(array)
shared = torch.ones(1_000_003, dtype=torch.uint8).share_memory_()
"""


def test_tensors_are_counted_once(tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(TORCH_PROGRAM)
    harness.record(tmp_path / "r", [harness.PYTHON, program], ["--host"]).ok()
    events = harness.events(tmp_path / "r")
    tensors = {n * 4096 for n in (37, 41, 43)}
    assert tensors <= {e["size_bytes"] for e in events if e["device"] == "cpu"}
    assert not tensors & set(sizes(events, "malloc"))
    assert sizes(events, "malloc").count(4_000_001) == 1
    assert [e for e in events if e["device"] == "shared memory" and e["action"] == "alloc"]
    assert not [s for s in sizes(events, "file maps") if 1_000_003 <= s < 1_000_003 + PAGE]


def test_without_the_option_nothing_of_it_is_there(tmp_path):
    program = compiled(tmp_path, "host_known")
    data = tmp_path / "data"
    data.write_bytes(b"x" * 70000)
    done = harness.record(tmp_path / "r", [program, data]).ok()
    assert b"nothing recorded" in done.stderr


LEAKING_PROGRAM = """
import numpy as np
kept = []
def load(i):
    kept.append(np.full((64, 1024), i, dtype=np.float64))     # 512 KiB, stays
    return (kept[-1] * 2).sum()                               # goes
for i in range(120):
    load(i)
"""


def test_a_line_that_keeps_arrays_is_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LEAKING_PROGRAM)
    harness.record(tmp_path / "r", [harness.PYTHON, program], ["--host"]).ok()
    report = harness.analysis(tmp_path / "r")
    found = [f for f in report["findings"] if "program.py:5" in json.dumps(f)]
    assert found and "host malloc" in json.dumps(found)
    malloc = next(d for d in report["devices"] if d["device"] == "host malloc")
    assert sum(h["bytes"] for h in malloc["holders_at_peak"] if h["line"] and "program.py:5" in h["line"]) == 120 * 512 * KB


SUMMED_PROGRAM = """
import numpy as np
import torch
tensor = torch.ones(1 << 20)
array = np.ones(30_000_000)
"""


def test_the_summary_names_the_peak_of_the_hosts_blocks_as_the_report_does(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SUMMED_PROGRAM)
    done = harness.record(tmp_path / "r", [harness.PYTHON, program], ["--host"], cwd=tmp_path).ok()
    lines = [line.removeprefix("gpumemprof: ") for line in done.stderr.decode().splitlines()]
    at = next(i for i, line in enumerate(lines) if " on host malloc" in line)
    assert "4.00 MiB" in lines[0] and " on cpu" in lines[0], lines
    # 240,000,000 bytes are 228.9 MiB.
    assert lines[at + 1].split()[:2] == ["229", "MiB"] and lines[at + 1].endswith("program.py:5 <module>  array = np.ones(30_000_000)"), lines
    report = harness.execute([harness.COMMAND, "analyze", tmp_path / "r"]).ok().stdout.decode()
    assert lines[at] in report.splitlines()
    assert lines[at + 2].startswith("The largest process had ") and lines[at + 3] == "Nothing was lost."
