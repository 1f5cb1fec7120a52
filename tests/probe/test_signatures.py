"""Every signature of PyTorch's report functions, against a stand-in for libc10 of our own."""
import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
GPUMEMPROF = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv/bin/gpumemprof"))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    out = tmp_path_factory.mktemp("c10")
    subprocess.run(["g++", "-O1", "-fPIC", "-shared",
                    str(HERE / "fake_c10.cc"), "-o", str(out / "libc10.so")], check=True)
    subprocess.run(["g++", "-O1", str(HERE / "call_c10.cc"), "-o", str(out / "call"),
                    f"-L{out}", "-lc10", f"-Wl,-rpath,{out}"], check=True)
    return out / "call"


@pytest.fixture(scope="module")
def recorded(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("signatures") / "recording"
    run = subprocess.run([GPUMEMPROF, "run", "-o", str(folder), "--", str(program)],
                         capture_output=True, text=True, check=True)
    jsonl = subprocess.run([GPUMEMPROF, "export", str(folder), "--to", "jsonl"],
                           capture_output=True, text=True, check=True).stdout
    return run.stdout, [json.loads(line) for line in jsonl.splitlines()]


def test_every_call_reaches_the_real_function_unchanged(program, recorded):
    plain = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert recorded[0] == plain.stdout


def test_device_events_of_all_signatures_are_recorded_once(recorded):
    seen = [(e["device"], e["action"], e["address"], e["size_bytes"]) for e in recorded[1]
            if e["action"] != "oom" and e["device"] not in ("cpu", "shared memory")]
    assert seen == [
        ("cuda:0", "alloc", 0x7F0000000000, 512),
        ("cuda:1", "alloc", 0x7F0000100000, 1024),
        ("privateuse1:0", "alloc", 0x7F0000200000, 1536),
        ("cuda:0", "alloc", 0x7E0000000000, 214748364800),
        ("cuda:0", "free_requested", 0x7E0000000000, 214748364800),
    ]


def test_out_of_memory_of_all_signatures_is_recorded(recorded):
    seen = [(e["device"], e["size_bytes"]) for e in recorded[1] if e["action"] == "oom"]
    assert seen == [("cuda:0", 5000000000), ("cuda:1", 5000000001), ("privateuse1:0", 5000000002)]


def test_cpu_reports_from_libc10_are_not_counted_twice_and_shared_memory_is_its_own_device(recorded):
    cpu = [(e["action"], e.get("size_bytes")) for e in recorded[1] if e["device"] == "cpu"]
    assert [c for c in cpu if c[0] == "alloc"] == [("alloc", 333), ("alloc", 444)]
    assert len([c for c in cpu if c[0] == "free_completed"]) == 2
    shared = [(e["action"], e["address"], e["size_bytes"]) for e in recorded[1]
              if e["device"] == "shared memory"]
    assert shared == [("alloc", 0x7D0000000000, 777), ("free_completed", 0x7D0000000000, 777)]


def test_running_totals_of_the_framework_give_the_reserved_peak(program, tmp_path):
    folder = tmp_path / "recording"
    subprocess.run([GPUMEMPROF, "run", "-o", str(folder), "--", str(program)], capture_output=True, check=True)
    analysis = json.loads(subprocess.run([GPUMEMPROF, "analyze", str(folder), "--format", "json"],
                                         capture_output=True, check=True).stdout)
    cuda0 = next(d for d in analysis["devices"] if d["device"] == "cuda:0")
    assert cuda0["peak_reserved"]["reserved_bytes"] == 322122547712
    assert cuda0["peak_allocated"]["allocated_bytes"] == 512 + 214748364800
    assert cuda0["events"]["oom"] == 1
