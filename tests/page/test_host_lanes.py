"""The host's memory over time, as the page draws it below the chart: against what the program held at each time."""

import harness

MIB = 1 << 20
PROGRAM = """
import mmap, os, time
import torch
block = torch.ones(1000)
time.sleep(2.2)
held = mmap.mmap(-1, 96 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held[::4096] = b"x" * (len(held) // 4096)
pid = os.fork()
if pid == 0:
    own = mmap.mmap(-1, 40 << 20)  # MAP_SHARED
    own[::4096] = b"x" * (len(own) // 4096)
    time.sleep(6)  # a busy machine takes a sample in some seconds
    os._exit(0)
os.waitpid(pid, 0)
time.sleep(2.2)
"""


def known(line):
    return [value for value in line["bytes"] if value is not None]


def test_classes_and_processes_have_lanes_in_time(record, view):
    folder = record([harness.PYTHON, "-c", PROGRAM]).ok().folder
    document = view(folder).run()["files"][0]["document"]
    charts = {part["title"]: part for section in document["sections"] for part in section["parts"] if part["kind"] == "chart"}
    classes = {line["name"]: line for line in charts["host memory of the run by class"]["lines"]}
    assert list(classes) == ["anonymous", "pages of files", "shared memory, pinned included"]
    anonymous, shared = classes["anonymous"], classes["shared memory, pinned included"]
    # From the fork on both have the 96 MiB, as shared pages count in each.
    levels = known(anonymous)
    assert max(later - one for one, later in zip(levels, levels[1:])) >= 96 * MIB, levels
    assert 40 * MIB <= max(known(shared)) - known(shared)[0] <= 48 * MIB
    assert anonymous["times_s"] == sorted(anonymous["times_s"]) and 5 <= anonymous["times_s"][-1] - anonymous["times_s"][0] <= 60
    parent, child = charts["resident (RSS) by process"]["lines"]
    assert parent["bytes"][-1] is not None and child["bytes"][-1] is None, "the child has ended before"
    assert max(known(parent)) == harness.analysis(folder)["host_memory"]["runs"][0]["processes"][0]["highest"]["resident_bytes"]
    assert child["times_s"][0] > parent["times_s"][0]


FIVE = """
import os, time
import torch
block = torch.ones(1000)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(4)
        os._exit(0)
for _ in range(4):
    os.wait()
"""


def test_a_lane_says_that_it_has_the_largest_processes_alone(record, view):
    folder = record([harness.PYTHON, "-c", FIVE]).ok().folder
    sections = view(folder).run()["files"][0]["document"]["sections"]
    charts = {part["title"]: part for section in sections for part in section["parts"] if part["kind"] == "chart"}
    assert len(charts["resident (RSS) by process, the 4 largest"]["lines"]) == 4
