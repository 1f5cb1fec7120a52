"""The Python package's figures of CUDA memory on a real GPU: `make gpu-test`. Skipped, with the reason, where there
is none. Every expected value is PyTorch's own counter, the driver's, or arithmetic on tensor sizes."""

import json
import subprocess
import sys
import textwrap

import pytest
from test_cuda_recording import why_no_cuda

import harness

pytestmark = pytest.mark.gpu

PREAMBLE = """
import json, torch
import gpumemprof
from gpumemprof import GPUMemoryProfiler
MIB = 2**20

def tensor(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8, device="cuda")

def rise(result):
    return result.memory_peak.allocated_memory - result.memory_before.allocated_memory

def show(**values):
    print(json.dumps(values))
"""


@pytest.fixture(scope="module", autouse=True)
def cuda():
    reason = why_no_cuda()
    if reason:
        pytest.skip(reason)


@pytest.fixture(params=["plain", "attach", "run"])
def shown(request, tmp_path):
    """Runs a piece of code in a process of its own; what it gave to show()."""

    def run(code):
        program = tmp_path / "program.py"
        attach = "gpumemprof.attach()\n" if request.param == "attach" else ""
        program.write_text(PREAMBLE + attach + textwrap.dedent(code))
        argv = [sys.executable, str(program)]
        if request.param == "run":
            argv = harness.run_argv(tmp_path / "recording", argv)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    run.how = request.param
    return run


def test_a_peak_is_that_of_the_blocks_that_were_made_and_dropped(shown):
    values = shown("""
        held = tensor(3 * MIB)  # the context and the library are up before the measurement
        def make_and_drop():
            tensor(64 * MIB)
            return tensor(1024)
        kept = []
        result = GPUMemoryProfiler(device="cuda").profile_function(lambda: kept.append(make_and_drop()))
        show(rise=rise(result), allocated=torch.cuda.memory_allocated())
    """)
    assert values["rise"] == 64 * 2**20
    assert values["allocated"] == 3 * 2**20 + 1024


def test_the_programs_own_maximum_is_left_as_it_was(shown):
    values = shown("""
        tensor(256 * MIB)
        before = torch.cuda.max_memory_allocated()
        result = GPUMemoryProfiler(device="cuda").profile_function(lambda: tensor(MIB))
        show(before=before, after=torch.cuda.max_memory_allocated())
    """)
    assert values["before"] == values["after"] == 256 * 2**20


def test_reserved_and_device_totals_are_those_of_pytorch_and_the_driver(shown):
    values = shown("""
        held = tensor(40 * MIB)
        snapshot = GPUMemoryProfiler(device="cuda").capture_snapshot("now")
        free, total = torch.cuda.mem_get_info()
        info = gpumemprof.get_gpu_info()
        show(allocated=snapshot.allocated_memory, reserved=snapshot.reserved_memory, total=info["total_memory"],
             torch_allocated=torch.cuda.memory_allocated(), torch_reserved=torch.cuda.memory_reserved(),
             device_total=torch.cuda.get_device_properties(0).total_memory)
    """)
    assert values["allocated"] == values["torch_allocated"] == 40 * 2**20
    assert values["reserved"] == values["torch_reserved"]
    assert values["total"] == values["device_total"]


def test_a_tracker_sees_the_level_that_the_program_holds(shown):
    values = shown("""
        held = tensor(96 * MIB)
        tracker = gpumemprof.MemoryTracker(device="cuda", sampling_interval=0.01)
        tracker.start_tracking()
        tracker._tick()
        tracker.stop_tracking()
        show(levels=sorted({e.memory_allocated for e in tracker.get_events("sample")}))
    """)
    assert values["levels"] == [96 * 2**20]


def test_an_out_of_memory_inside_a_profiled_call_is_raised_and_measured(shown):
    values = shown("""
        profiler = GPUMemoryProfiler(device="cuda")
        def ask():
            part = tensor(32 * MIB)
            torch.empty(torch.cuda.get_device_properties(0).total_memory * 2, dtype=torch.uint8, device="cuda")
        try:
            profiler.profile_function(ask)
            raised = False
        except torch.OutOfMemoryError:
            raised = True
        show(raised=raised, rise=rise(profiler.results[-1]), allocated=torch.cuda.memory_allocated())
    """)
    assert values["raised"] and values["rise"] == 32 * 2**20
    assert values["allocated"] == 0
