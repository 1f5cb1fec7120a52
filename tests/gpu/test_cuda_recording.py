"""Recordings of CUDA memory on a real GPU: `make gpu-test`. Skipped, with the reason, where there is none."""

import importlib.util
import subprocess
import sys
import textwrap

import pytest

from harness import PYTHON, analysis, events, frames

pytestmark = pytest.mark.gpu


def why_no_cuda():
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    ask = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    if subprocess.run([PYTHON, "-c", ask], capture_output=True, check=False).returncode != 0:
        return "torch.cuda.is_available() is false: no GPU, no driver, or a CPU build of PyTorch"
    return None


@pytest.fixture(scope="module", autouse=True)
def cuda():
    reason = why_no_cuda()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def record_program(record, tmp_path):
    """Records a program given as text; what it printed, its events, and its file."""

    def run(source, *options):
        program = tmp_path / "program.py"
        program.write_text("import json, torch\n" + textwrap.dedent(source))
        done = record([sys.executable, program], options).ok()
        return done.printed(), events(done.folder), done.folder

    return run


def on_gpu(all_events, action=None):
    return [e for e in all_events if e["device"] == "cuda:0" and action in (None, e["action"])]


MIB = 1 << 20


def handed_out(size):
    """The block of a request that finds no free one: a multiple of 512 bytes; from 10 MiB on a segment of its own, in
    multiples of 2 MiB, whose rest stays with the block where it is 1 MiB or less (c10/cuda/CUDACachingAllocator.cpp)."""
    rounded = (size + 511) // 512 * 512
    segment = (rounded + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
    return segment if rounded >= 10 * MIB and segment - rounded <= MIB else rounded


SIZES = """
    sizes = [1, 512, 513, 1000, 4096, 100_000, (1 << 20) - 1, (1 << 20) + 1, 7_000_001, 33_000_000]
    kept = []
    for size in sizes:
        kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        print(json.dumps([size, torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]))
"""


def test_sizes_are_what_the_allocator_handed_out(record_program):
    printed, recorded, _ = record_program(SIZES)
    allocs = on_gpu(recorded, "alloc")
    assert len(allocs) == len(printed)
    before = 0
    for event, (size, allocated, _) in zip(allocs, printed):
        assert event["size_bytes"] == handed_out(size)
        assert event["size_bytes"] == allocated - before
        before = allocated


def test_the_sum_of_the_events_is_memory_allocated(record_program):
    printed, recorded, _ = record_program(SIZES)
    total = 0
    seen = []
    for event in on_gpu(recorded, "alloc"):
        total += event["size_bytes"]
        seen.append(total)
    assert seen == [allocated for _, allocated, _ in printed]


def test_each_allocation_names_its_line(record_program):
    _, recorded, _ = record_program(SIZES)
    for event in on_gpu(recorded, "alloc"):
        top = frames(event)[0]
        assert top.file.endswith("program.py") and top.line == 6


def test_peak_is_max_memory_allocated(record_program):
    printed, _, folder = record_program(
        """
        model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(256, 512, device="cuda")).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
        print(json.dumps([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(),
                          torch.cuda.memory_stats()["requested_bytes.all.peak"]]))
        """
    )
    device = next(d for d in analysis(folder)["devices"] if d["device"] == "cuda:0")
    assert device["peak_allocated"]["allocated_bytes"] == printed[0][0]
    assert device["peak_reserved"]["reserved_bytes"] == printed[0][1]
    assert device["peak"]["basis"] == "requested" and device["peak"]["requested_bytes"] == printed[0][2]
    assert sum(h["bytes"] for h in device["holders_at_peak"]) == printed[0][2]


def test_frees_match_their_allocations(record_program):
    _, recorded, _ = record_program(
        """
        for _ in range(3):
            tensors = [torch.empty(10_000 * i, dtype=torch.uint8, device="cuda") for i in range(1, 50)]
            del tensors
        assert torch.cuda.memory_allocated() == 0
        """
    )
    live = {}
    for event in on_gpu(recorded):
        if event["action"] == "alloc":
            assert event["address"] not in live
            live[event["address"]] = event["size_bytes"]
        elif event["action"] == "free_completed":
            assert live.pop(event["address"]) == event["size_bytes"]
    assert not live


def test_out_of_memory_is_an_event_with_the_line_that_asked(record_program):
    printed, recorded, _ = record_program(
        """
        asked = torch.cuda.get_device_properties(0).total_memory * 2
        try:
            torch.empty(asked, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            print(json.dumps([asked]))
        """
    )
    found = on_gpu(recorded, "oom")
    assert len(found) == 1
    assert found[0]["size_bytes"] >= printed[0][0]
    assert frames(found[0])[0].line == 5


def test_the_program_prints_the_same_with_and_without(record_program, tmp_path):
    printed, _, _ = record_program(SIZES)
    plain = subprocess.run(
        [sys.executable, tmp_path / "program.py"], capture_output=True, check=True, text=True
    )
    assert plain.stdout.splitlines() == [str(line).replace("'", '"') for line in printed]
