"""Level Zero, by a fake of ours over the same machine: recorded to the byte with the library that called, by its own numbers.
No Intel device took part."""

import subprocess
import sys
import textwrap
from pathlib import Path

import harness
import pytest
from fake_machine import FAKES, Recorded, environment
from test_identity import named

MIB = 1 << 20
HERE = Path(__file__).parent

PROGRAM = """
import struct
torch, sycl = library("libc10_xpu.so"), library("libur_adapter.so")
torch.call("zeInit", 0)
count, driver, devices = ctypes.c_uint32(0), ctypes.c_long(), (ctypes.c_long * 2)()
torch.call("zeDriverGet", ctypes.c_uint32(1), driver)
torch.call("zeDeviceGet", driver.value, ctypes.c_uint32(2), devices)
first, second = devices
def device_block(by, device, size):
    out = ctypes.c_long()
    by.call("zeMemAllocDevice", 0, 0, size, 64, device, out)
    return out.value
kept = device_block(sycl, first, 20 * MIB)
device_block(sycl, second, 300 * MIB)
sycl.call("zeMemFree", 0, device_block(sycl, second, 64 * MIB))
assert sycl.ask("zeMemAllocDevice", 0, 0, 1 << 40, 64, second, ctypes.c_long()) == 0x70000003
# A stranger's device: the answer is the loader's, and what cannot be counted is counted as lost.
assert sycl.ask("zeMemAllocDevice", 0, 0, MIB, 64, first - 4096, ctypes.c_long()) == 0x78000004

physical = ctypes.c_long()
desc = ctypes.create_string_buffer(struct.pack("<I4xQI4xQ", 0, 0, 0, 40 * MIB))
torch.call("zePhysicalMemCreate", 0, first, desc, physical)
space = ctypes.c_long()
torch.call("zeVirtualMemReserve", 0, 0, 64 * MIB, space)
torch.call("zeVirtualMemMap", 0, space.value, 40 * MIB, physical.value, 0, 1)
torch.call("zePhysicalMemDestroy", 0, physical.value)

out = ctypes.c_long()
assert torch.code.shared(ctypes.c_long(first), ctypes.c_long(7 * MIB), ctypes.byref(out)) == 0
host = ctypes.c_long()
torch.call("zeMemAllocHost", 0, 0, 8 * MIB, 64, host)
end(second=books(device=1), tomorrow=torch.ask("zeOfTomorrow", 7, 5))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    if not (FAKES / "level_zero").is_dir():
        pytest.skip(f"no fake of Level Zero in {FAKES}: `make test` builds it")
    folder = tmp_path_factory.mktemp("ze")
    for name in ("libc10_xpu.so", "libur_adapter.so"):
        subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", "-o", folder / name, HERE / "ze_caller.c",
                        f"-L{FAKES / 'level_zero'}", "-l:libze_loader.so.1"], check=True)  # fmt: skip
    return folder


def run(tmp_path, libraries, *options, machine="machine"):
    env = environment(tmp_path, board="a100-pair", driver=False)
    env |= {"LD_LIBRARY_PATH": f"{FAKES / 'level_zero'}:{env['LD_LIBRARY_PATH']}", "FAKE_GPU_STATE": str(tmp_path / machine)}
    program = tmp_path / "program.py"
    program.write_text("from hip_calls import *\n" + textwrap.dedent(PROGRAM))
    folder = tmp_path / f"recording of {machine}"
    argv = [harness.COMMAND, "run", "-o", str(folder), *options, "--", sys.executable, str(program), str(libraries)]
    return Recorded(folder, harness.execute(argv, env=env).ok(), env)


def test_every_byte_is_recorded_by_device_and_library(tmp_path, libraries):
    recorded = run(tmp_path, libraries)
    said, analysis = recorded.said(), recorded.analysis()
    devices = {one["device"]: one for one in analysis["driver"]["devices"]}
    assert set(devices) == {"xpu:0", "xpu:1"}
    first, second = devices["xpu:0"]["end"], devices["xpu:1"]["end"]
    assert (first["by_kind"]["memory"], second["by_kind"]["memory"]) == (20 * MIB, 300 * MIB)
    assert (said["books"]["memory"], said["second"]["memory"]) == (20 * MIB, 300 * MIB)
    assert first["by_kind"]["handles"] == said["books"]["handles"] == 40 * MIB
    assert named(first) == {"libur_adapter.so": 20 * MIB} and named(second) == {"libur_adapter.so": 300 * MIB}
    assert first["framework"]["libraries"] == [{"name": "libc10_xpu.so", "bytes": 40 * MIB}]
    assert devices["xpu:1"]["peak"]["by_kind"]["memory"] == 364 * MIB and devices["xpu:1"]["refused_count"] == 1
    assert first["beside"]["managed_bytes"] == 7 * MIB and first["rounding_bytes"] == 0
    assert first["device_used_bytes"] is None and first["unknown"]["device_used"]
    (host,) = analysis["driver"]["hosts"]
    assert host["pinned_bytes"] == 8 * MIB
    assert "Level Zero: xpu:0 " in recorded.text()


def test_the_program_sees_no_difference(tmp_path, libraries):
    said = run(tmp_path, libraries).said()
    assert said == run(tmp_path, libraries, "--no-driver", machine="another machine").said()
    assert said["tomorrow"] == 7005, "what nobody has heard of is answered by the real one"


def test_where_it_is_not_installed_nothing_is_preloaded(tmp_path):
    env = environment(tmp_path, driver=False)
    argv = [harness.COMMAND, "run", "-o", str(tmp_path / "r"), "--", "sh", "-c", "echo $LD_PRELOAD"]
    assert "level_zero" not in harness.execute(argv, env=env).ok().stdout.decode()
