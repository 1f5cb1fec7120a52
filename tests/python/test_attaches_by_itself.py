"""Where PyTorch is imported, whoever asks for figures gets exact ones: nobody has to call attach()."""
import os
import re
import subprocess

import harness
import pytest

pytest.importorskip("torch")

BLOCKS, EDGE = 10, 256
PEAK_BYTES = BLOCKS * EDGE * EDGE * 4  # float32
PROGRAM = f"""
import torch, gpumemprof
older = torch.zeros(1 << 20)
profiler = gpumemprof.GPUMemoryProfiler(device="cpu")
before = torch.zeros(1 << 20)
def work():
    blocks = [torch.ones({EDGE}, {EDGE}) for _ in range({BLOCKS})]
"""


def as_started():
    return {name: value for name, value in os.environ.items() if name != "GPUMEMPROF_NO_ATTACH"}


def run(program, **environment):
    done = subprocess.run([harness.PYTHON, "-c", program], capture_output=True, text=True, timeout=120,
                          env={**as_started(), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_profiler_counts_tensors_without_attach():
    out = run(PROGRAM + "result = profiler.profile_function(work)\n"
              "print(result.basis, result.peak_over_start(), result.peak_memory_usage(), result.tensors_created)")
    assert out.split() == ["exact", str(PEAK_BYTES), str(PEAK_BYTES + (4 << 20)), str(BLOCKS)]


def test_a_tracker_counts_tensors_without_attach():
    out = run("import torch, gpumemprof\n"
              "tracker = gpumemprof.MemoryTracker(device='cpu', sampling_interval=0.01)\n"
              "tracker.start_tracking()\nkept = [torch.ones(1024) for _ in range(7)]\ntracker.stop_tracking()\n"
              "statistics = tracker.get_statistics()\n"
              "print(statistics['basis'], statistics['total_allocations'], statistics['peak_memory'])")
    assert out.split() == ["exact", "7", str(7 * 4096)]


def test_lines_are_exact_though_the_script_imports_pytorch_itself(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\nfrom gpumemprof import profile_lines\n@profile_lines\ndef work():\n"
                      "    a = torch.ones(1 << 20)\n    b = a + 1\nwork()\n")
    done = harness.execute([harness.COMMAND, "lines", script], env=as_started()).ok().stdout.decode()
    assert "exact" in done and "host" not in done


def test_it_is_forbidden_by_a_variable_and_the_reason_is_told():
    out = run(PROGRAM + "print(profiler.basis)\nprint(profiler.basis_reason)", GPUMEMPROF_NO_ATTACH="1")
    assert out.startswith("host\n") and "GPUMEMPROF_NO_ATTACH is set" in out


def test_without_pytorch_nothing_is_attached():
    out = run("import sys, gpumemprof\nfrom gpumemprof._counting.probe_counters import exact_available\n"
              "print(exact_available()[1])\nprint('torch' in sys.modules)")
    assert "PyTorch was not imported yet" in out and out.endswith("False\n")


@pytest.mark.parametrize("what", ["profiler.profile_function(work)", "profiler.get_summary()",
                                  "gpumemprof.CPUMemoryProfiler().profile_function(work)"])
def test_what_is_printed_fits_on_a_screen(what):
    out = run(PROGRAM + f"profiler.profile_function(work)\nprint({what})")
    assert 3 <= len(out.splitlines()) <= 24
    assert "snapshot" not in out and "{" not in out


def test_statistics_print_as_lines_and_are_a_dict():
    out = run("import json, torch, gpumemprof\n"
              "tracker = gpumemprof.MemoryTracker(device='cpu', sampling_interval=0.01)\n"
              "tracker.start_tracking()\nkept = torch.ones(1024)\ntracker.stop_tracking()\n"
              "statistics = tracker.get_statistics()\nassert isinstance(statistics, dict)\n"
              "json.dumps(statistics)\nprint(statistics)")
    assert "peak       4.00 KiB (exact)\n" in out and len(out.splitlines()) <= 12


GENERATOR = """
import torch
from gpumemprof import GPUMemoryProfiler, profile_function
profiler = GPUMemoryProfiler("cpu")
@profile_function(profiler=profiler)
def batches():
    for _ in range(3):
        yield torch.empty(1 << 20, dtype=torch.uint8)
kept = [torch.empty(50 << 20, dtype=torch.uint8) for _ in batches()]
(result,) = profiler.results
print(result)
print(result.memory_allocated, result.own_peak_bytes)
"""


def test_what_the_consumer_of_a_generator_allocates_is_not_its_own():
    out = run(GENERATOR)
    # The loop still has one tensor when the next one is made.
    assert out.splitlines()[-1] == f"{3 << 20} {2 << 20}"
    assert re.search(r"^peak +151 MiB over the start, 151 MiB in all\nof its own +at most 2.00 MiB at once\n", out, re.M)
