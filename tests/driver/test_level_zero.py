"""Level Zero, by a fake of ours over the same machine: recorded to the byte with the library that called, by its own numbers.
No Intel device took part."""

import harness
from fake_machine import ZE_BEGIN as BEGIN
from fake_machine import environment
from test_identity import named

MIB = 1 << 20

PROGRAM = BEGIN + """
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


def test_every_byte_is_recorded_by_device_and_library(record_ze):
    recorded = record_ze(PROGRAM)
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
    assert (first["beside"]["address_space_bytes"], first["beside"]["mapped_bytes"]) == (64 * MIB, 40 * MIB)
    assert first["device_used_bytes"] is None and first["unknown"]["device_used"]
    (host,) = analysis["driver"]["hosts"]
    assert host["pinned_bytes"] == 8 * MIB
    assert "Level Zero: xpu:0 " in recorded.text()


OTHERS = BEGIN + """
def imported(device, size, pid=4711):
    out = ctypes.c_long()
    code = torch.code.open_imported(ctypes.c_long(device), ctypes.c_long(pid), ctypes.c_long(size), ctypes.byref(out))
    return out.value if code == 0 else code
# By handles of other processes: two of them, one that is closed again, one that is none.
imported(first, 48 * MIB), imported(second, 5000)
torch.call("zeMemCloseIpcHandle", 0, imported(first, 20 * MIB))
assert imported(first, MIB, pid=0) == 0x78000004
assert torch.ask("zeMemCloseIpcHandle", 0, 4711) == 0x78000004
# By a file's number, which follows the descriptor: this process asks for it and pays nothing.
by_file = ctypes.create_string_buffer(struct.pack("<I4xQIi", 0x19, 0, 1, 3))
desc = ctypes.create_string_buffer(struct.pack("<I4xQII", 0x15, ctypes.addressof(by_file), 0, 0))
kept, gone = ctypes.c_long(), ctypes.c_long()
sycl.call("zeMemAllocDevice", 0, desc, 16 * MIB, 64, second, kept)
sycl.call("zeMemAllocDevice", 0, desc, 32 * MIB, 64, second, gone)
sycl.call("zeMemFreeExt", 0, 0, gone.value)
other = ctypes.create_string_buffer(struct.pack("<I4xQI4xI4x", 0x10000, ctypes.addressof(by_file), 0, 0))
sycl.call("zeMemAllocDevice", 0, ctypes.create_string_buffer(struct.pack("<I4xQII", 0x15, ctypes.addressof(other), 0, 0)), 2 * MIB, 64, first, kept)
physical = [ctypes.c_long() for i in range(2)]
for handle in physical:
    torch.call("zePhysicalMemCreate", 0, second, ctypes.create_string_buffer(struct.pack("<I4xQI4xQ", 0x20, ctypes.addressof(by_file), 0, 12 * MIB)), handle)
torch.call("zePhysicalMemDestroy", 0, physical[0].value)

# Reserved addresses, which are of no device: two ranges, one that is given back, one that is refused.
spaces = [ctypes.c_long() for i in range(3)]
for space, size in zip(spaces, (64 * MIB, 128 * MIB, 256 * MIB)): torch.call("zeVirtualMemReserve", 0, 0, size, space)
torch.call("zeVirtualMemFree", 0, spaces[2].value, 256 * MIB)
assert torch.ask("zeVirtualMemFree", 0, spaces[1].value, MIB) == 0x78000004
assert torch.ask("zeVirtualMemReserve", 0, 0, 0, ctypes.c_long()) == 0x78000004
end(second=books(device=1))
"""


def test_memory_of_others_and_reserved_addresses_are_none_of_the_process(record_ze):
    recorded = record_ze(OTHERS)
    said, analysis = recorded.said(), recorded.analysis()
    first, second = (one["end"] for one in sorted(analysis["driver"]["devices"], key=lambda one: one["device"]))
    assert first["explained_bytes"] == second["explained_bytes"] == 0
    assert sum(said["books"].values()) == said["books"]["contexts"] and sum(said["second"].values()) == said["second"]["contexts"]
    assert (first["beside"]["imported_bytes"], second["beside"]["imported_bytes"]) == ((48 + 2) * MIB, (16 + 12) * MIB + 5000)
    assert (first["beside"]["address_space_bytes"], second["beside"]["address_space_bytes"]) == (192 * MIB, 0)
    assert analysis["lost"]["events"] == 0


def test_an_imported_block_whose_size_is_not_told_is_a_loss_that_is_counted(record_ze):
    recorded = record_ze(BEGIN + """
out = ctypes.c_long()
assert torch.code.open_imported(ctypes.c_long(first), ctypes.c_long(4711), ctypes.c_long(0), ctypes.byref(out)) == 0
end()
""")  # fmt: skip
    assert recorded.lost_in_driver() == 1


def test_the_program_sees_no_difference(record_ze):
    said = [record_ze(program, machine=name).said() for program, name in ((PROGRAM, "a"), (OTHERS, "b"))]
    assert said == [record_ze(program, "--no-driver", machine=name).said() for program, name in ((PROGRAM, "c"), (OTHERS, "d"))]
    assert said[0]["tomorrow"] == 7005, "what nobody has heard of is answered by the real one"


def test_where_it_is_not_installed_nothing_is_preloaded(tmp_path):
    env = environment(tmp_path, driver=False)
    argv = [harness.COMMAND, "run", "-o", str(tmp_path / "r"), "--", "sh", "-c", "echo $LD_PRELOAD"]
    assert "level_zero" not in harness.execute(argv, env=env).ok().stdout.decode()
