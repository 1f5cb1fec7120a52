"""Collectors: what they say against the system itself, and what they leave unsaid."""

import sys
from pathlib import Path

import pytest
from harness import PYTHON, execute, fresh_pages, record

from gpumemprof import DeviceMemorySample, build_device_memory_collector, detect_torch_runtime_backend
from gpumemprof._counting.devices import index_of, kind_of
from gpumemprof._counting.host_memory import HostMemory
from gpumemprof.device_collectors import CPUDeviceCollector, DeviceMemoryCollector

MIB = 1 << 20


def meminfo(name):
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def test_without_a_probe_the_cpu_is_the_resident_memory_of_the_process():
    collector = build_device_memory_collector("cpu")
    before = collector.sample().allocated_bytes
    keep = fresh_pages(64 * MIB)
    after = collector.sample().allocated_bytes
    keep.close()
    assert 64 * MIB <= after - before < 80 * MIB
    assert (collector.basis, collector.name(), collector.device_id) == ("host", "cpu", -1)
    assert collector.basis_reason.startswith("resident memory of the process: ")


def test_what_the_host_does_not_tell_is_none_with_a_reason():
    result = CPUDeviceCollector().sample_with_diagnostics()
    assert set(result.partial_fields) == {"reserved_bytes", "active_bytes", "inactive_bytes"}
    assert result.errors["reserved_bytes"] == "PyTorch keeps no cache of host memory"
    assert result.is_partial and not result.is_core_failure


def test_a_sample_is_of_the_machine_or_of_a_tighter_control_group():
    sample = CPUDeviceCollector().sample()
    assert 0 < sample.total_bytes <= meminfo("MemTotal")
    assert sample.used_bytes + sample.free_bytes == sample.total_bytes


def test_capabilities_have_the_documented_keys():
    found = CPUDeviceCollector().capabilities()
    assert found["backend"] == "cpu" and found["telemetry_collector"] == "gpumemprof.cpu_tracker"
    assert found["supports_device_total"] is True and found["supports_device_free"] is True
    assert found["sampling_source"] == "/proc" and found["supports_exact_counts"] is False


def test_under_a_recording_the_cpu_is_what_tensors_hold(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import json, torch
from gpumemprof import build_device_memory_collector
collector = build_device_memory_collector("cpu")
rows = []
def look():
    sample, totals = collector.sample(), collector.totals()
    rows.append([sample.allocated_bytes, totals.alloc_count, totals.free_count, totals.alloc_bytes, totals.free_bytes])
look()
a = torch.empty(1 << 20, dtype=torch.uint8); look()
b = torch.empty(3 << 20, dtype=torch.uint8); look()
del a; look()
print(json.dumps([collector.basis, rows]))
""")
    done = record(tmp_path / "recording", [PYTHON, program], ["--quiet"]).ok()
    ((basis, rows),) = done.printed()
    assert basis == "exact"
    first = rows[0]
    assert [[x - y for x, y in zip(row, first, strict=True)] for row in rows] == [
        [0, 0, 0, 0, 0], [MIB, 1, 0, MIB, 0], [4 * MIB, 2, 0, 4 * MIB, 0], [3 * MIB, 2, 1, 4 * MIB, MIB],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "kind", "index"),
    [(None, None, None), ("cpu", "cpu", None), ("cuda", "cuda", None), ("cuda:3", "cuda", 3), (2, "cuda", 2),
     ("mps", "mps", None), ("GPU:1", "cuda", 1)],
)  # fmt: skip
def test_devices_are_understood_as_people_write_them(device, kind, index):
    assert kind_of(device) == kind
    assert device is None or index_of(device) == index


def test_a_device_of_pytorch_is_understood():
    import torch

    assert kind_of(torch.device("cuda:1")) == "cuda" and index_of(torch.device("cuda:1")) == 1
    assert build_device_memory_collector(torch.device("cpu")).name() == "cpu"


@pytest.mark.parametrize("device", ["", "7", -1, True, 3.5, object()])
def test_what_is_no_device_is_an_error(device):
    with pytest.raises(ValueError, match="is not a device"):
        build_device_memory_collector(device)


def test_a_gpu_that_is_not_there_is_an_error_that_says_what_to_do():
    if detect_torch_runtime_backend() != "cpu":
        pytest.skip("there is one")
    with pytest.raises(RuntimeError, match='CUDA is not available here: use device="cpu"'):
        build_device_memory_collector("cuda:0")
    assert build_device_memory_collector().name() == "cpu"


def test_without_pytorch_there_is_the_cpu():
    program = """
import sys
sys.modules["torch"] = None
from gpumemprof import build_device_memory_collector, detect_torch_runtime_backend
print('["%s", "%s"]' % (detect_torch_runtime_backend(), build_device_memory_collector().name()))
"""
    assert execute([sys.executable, "-c", program]).ok().printed() == [["cpu", "cpu"]]


class Broken(DeviceMemoryCollector):
    def name(self):
        return "broken"

    def is_available(self):
        return True

    def _read(self, missing):
        raise OSError("gone")


def test_a_device_that_cannot_be_read_is_said_and_not_raised():
    result = Broken().sample_with_diagnostics()
    assert result.is_core_failure and result.core_error == "OSError: gone" and result.sample is None
    with pytest.raises(OSError, match="gone"):
        Broken().sample()


def test_samples_are_immutable():
    with pytest.raises(AttributeError):
        DeviceMemorySample(1, 2, 3, 4, 5, 6, 7, 0).used_bytes = 9


def system(root, *, cgroup, mountinfo, files, available_kib=800_000):
    """A /proc and control groups of our own making."""
    for name, text in {
        "proc/meminfo": f"MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable: {available_kib} kB\n",
        "proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo, **files,
    }.items():  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostMemory(root).read()


V2 = dict(cgroup="0::/job/step\n", mountinfo="30 1 0:2 / /cg rw - cgroup2 cgroup rw\n")
V1 = dict(cgroup="4:memory:/docker/x\n0::/\n", mountinfo="30 1 0:2 /docker/x /cg rw - cgroup cgroup rw,memory\n")


def test_a_control_group_with_a_limit_is_the_host(tmp_path):
    files = {"cg/job/step/memory.max": "300000\n", "cg/job/step/memory.current": "200000\n",
             "cg/job/step/memory.stat": "anon 1\ninactive_file 50000\n"}  # fmt: skip
    found = system(tmp_path, files=files, **V2)
    assert (found.total_bytes, found.used_bytes, found.free_bytes) == (300_000, 150_000, 150_000)
    assert found.limit == "control group step"


def test_the_parent_group_with_less_room_is_the_limit(tmp_path):
    files = {"cg/job/step/memory.max": "300000\n", "cg/job/step/memory.current": "0\n",
             "cg/job/memory.max": "400000\n", "cg/job/memory.current": "390000\n"}  # fmt: skip
    assert system(tmp_path, files=files, **V2).free_bytes == 10_000


def test_a_group_of_version_1_inside_a_container_is_found(tmp_path):
    files = {"cg/memory.limit_in_bytes": "5000\n", "cg/memory.usage_in_bytes": "2000\n",
             "cg/memory.stat": "total_inactive_file 500\n"}  # fmt: skip
    assert system(tmp_path, files=files, **V1).used_bytes == 1500


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n", "rubbish", ""])
def test_without_a_limit_the_machine_is_the_host(tmp_path, limit):
    files = {"cg/job/step/memory.max": limit, "cg/job/step/memory.current": "5\n"}
    found = system(tmp_path, files=files, **V2)
    assert (found.total_bytes, found.used_bytes, found.limit) == (1_000_000 * 1024, 200_000 * 1024, "machine")


def test_where_there_is_no_proc_nothing_is_said(tmp_path):
    assert HostMemory(tmp_path).read() is None
