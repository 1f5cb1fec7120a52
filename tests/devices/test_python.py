"""get_gpu_info and the collectors on a machine with GPUs: the driver's figures are those of the board's file.

PyTorch's part is a stand-in of ours: no test machine has CUDA.
"""

import json
import os

import harness
import pytest

MIB = 1 << 20
BEGIN = f"""
import json, sys, types
sys.path.insert(0, {str(harness.ROOT / "tests" / "python")!r})
from fake_cuda import FakeCuda, torch_of
def cuda(**settings):
    made = FakeCuda(**settings)
    sys.modules["torch"] = torch_of(made)
    made.get_device_properties = lambda index: types.SimpleNamespace(
        name="A", major=8, minor=0, total_memory=7, multi_processor_count=108, uuid=UUID)
    made.memory_allocated = made.max_memory_allocated = made.max_memory_reserved = made.memory_reserved
    sys.modules["torch"].__version__ = "2"
    return made
UUID = "5c89852c-d268-c3f3-1b07-005d5ae1dc3f"
"""


def said(env, program):
    look = "import gpumemprof._native as n; print(hasattr(n, 'accelerators'))"
    if harness.execute([harness.PYTHON, "-c", look]).ok().stdout != b"True\n":
        pytest.skip("the native module is of an older build")
    return json.loads(harness.execute([harness.PYTHON, "-c", BEGIN + program], env=env).ok().stdout)


def test_get_gpu_info_has_what_nvidia_smi_shows(machine):
    info = said(machine("a100-80gb"), "cuda(count=1)\nimport gpumemprof; print(json.dumps(gpumemprof.get_gpu_info(0)))")
    assert info["device_name"] == "A"
    assert info["nvidia_smi_info"] == {
        "memory_total_mb": 81920, "memory_used_mb": 20314, "memory_free_mb": 81920 - 20314 - 633,
        "gpu_utilization_percent": 87, "temperature_c": 58, "power_draw_w": 311.45,
    }  # fmt: skip


def test_what_the_driver_does_not_tell_is_none_with_the_reason(machine):
    program = """
UUID = ''
cuda(count=1)
import gpumemprof; print(json.dumps(gpumemprof.get_gpu_info(0)['nvidia_smi_info']))"""
    smi = said(machine("l40s"), program)
    assert smi["memory_used_mb"] == 12000 and smi["power_draw_w"] is None
    assert smi["unknown"] == {"power_draw_w": "the driver does not report it for this device (NVML: not supported)"}
    missing = said({**os.environ, "LD_LIBRARY_PATH": "", "GPUMEMPROF_DEVICE_ROOT": "/nonexistent"}, program)
    if "device" not in missing.get("unknown", {}):
        pytest.skip("this machine has a GPU")
    why = "no NVIDIA driver (libnvidia-ml.so.1), and no amdgpu, i915 or xe under /sys/class/drm"
    assert missing == {"unknown": {"device": why}}


def test_without_pytorchs_cuda_the_devices_are_there_all_the_same(machine):
    info = said(machine("h200"), """
made = cuda(count=0)
made.is_available = lambda: False
import gpumemprof; print(json.dumps(gpumemprof.get_gpu_info()))""")
    assert info["error"] == "CUDA is not available"
    assert [d["name"] for d in info["devices"]] == ["NVIDIA H200"]


def test_a_collector_asks_the_driver_where_cuda_would_make_a_context(machine):
    rows = said(machine("a100-80gb"), """
made = cuda(count=1, contexts=())
from gpumemprof import build_device_memory_collector
import dataclasses
collector = build_device_memory_collector("cuda:0")
rows = [dataclasses.asdict(collector.sample())]
made.change(0, 100)
made.contexts.add(0)
rows.append(dataclasses.asdict(collector.sample()))
print(json.dumps(rows))""")
    used = (20314 + 633) * MIB
    assert rows[0]["used_bytes"] == used and rows[0]["free_bytes"] == 81920 * MIB - used
    assert rows[0]["total_bytes"] == 81920 * MIB
    assert (rows[1]["used_bytes"], rows[1]["total_bytes"]) == (400, 1000), "then CUDA itself"


def test_a_lost_device_is_a_reason_and_no_error(machine):
    result = said(machine("h100-pair"), """
cuda(count=2, contexts=())
import os
os.environ.update(CUDA_VISIBLE_DEVICES="1,0", CUDA_DEVICE_ORDER="PCI_BUS_ID")
from gpumemprof import build_device_memory_collector
result = [build_device_memory_collector(f"cuda:{i}").sample_with_diagnostics() for i in (0, 1)]
print(json.dumps([[r.sample.total_bytes, r.errors] for r in result]))""")
    assert result[0][0] is None and result[1][0] == 81559 * MIB
    assert result[0][1]["total_bytes"] == "the GPU has fallen off the bus (NVML: GPU is lost)"


def test_gaps_are_found_in_what_others_take_of_the_device(machine, tmp_path):
    """The device's use as the driver tells it, while this process's reserved stays: a drift that is somebody else's."""
    found = said(machine("a100-80gb"), """
cuda(count=1, contexts=())
import os, re
from gpumemprof import build_device_memory_collector
from gpumemprof._counting.accelerators import device_memory
from gpumemprof.gap_analysis import analyze_gaps
from gpumemprof import TelemetryEventV2, telemetry_event_from_record
used = device_memory(0)["used_bytes"]
events = []
for i in range(60):
    events.append(telemetry_event_from_record({
        "schema_version": 2, "timestamp_ns": 10**18 + i * 10**9, "event_type": "sample",
        "collector": "gpumemprof.cuda_tracker", "sampling_interval_ms": 1000, "pid": 1, "host": "h", "device_id": 0,
        "allocator_allocated_bytes": 1 << 30, "allocator_reserved_bytes": 1 << 30, "allocator_active_bytes": None,
        "allocator_inactive_bytes": None, "allocator_change_bytes": 0, "device_used_bytes": used + i * (1 << 28),
        "device_free_bytes": None, "device_total_bytes": 81920 << 20, "context": None, "job_id": None, "rank": 0,
        "local_rank": 0, "world_size": 1, "metadata": {}}))
print(json.dumps([f.classification for f in analyze_gaps(events)]))""")
    assert "persistent_drift" in found
