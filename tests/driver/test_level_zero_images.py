"""Level Zero's images, by a fake of ours: counted by what the driver says of their memory, and not at all where it does not say.
In the fake rows begin at multiples of 64 bytes and memory comes in pages of 2 MiB, of which Level Zero does not tell."""

from fake_machine import ZE_BEGIN
from test_identity import named

MIB = 1 << 20

BEGIN = ZE_BEGIN + """
FLAT, PLANE, PLANES, VOLUME = 0, 2, 3, 4
FLOATS, BYTE = 8, 0  # layouts: four channels of 32 bits, one of 8
def image(kind, layout, width, height=0, depth=0, layers=0, after=0):
    return ctypes.create_string_buffer(struct.pack("<I4xQII6IQIIII", 0x13, after, 0, kind, layout, 0, 0, 0, 0, 0, width, height, depth, layers, 0))
def make(desc, device=first, by=sycl):
    out = ctypes.c_long()
    by.call("zeImageCreate", 0, device, desc, out)
    return out.value
"""

IMAGES = BEGIN + """
# Whole pages: 1024 rows of 16 KiB, 4 planes of 512 rows of 1 KiB, 16 layers of 256 rows of 512 bytes.
make(image(PLANE, FLOATS, 1024, 1024))
make(image(VOLUME, BYTE, 1024, 512, 4))
make(image(PLANES, BYTE, 512, 256, layers=16), second)
# 1000 rows of 1000 bytes, which are 1024 apart; and one row of 100 bytes in 128.
make(image(PLANE, BYTE, 1000, 1000))
make(image(FLAT, BYTE, 100), by=torch)

# What is gone again, what is refused, and what is none; a view's handle, of which nothing is known.
sycl.call("zeImageDestroy", make(image(PLANE, FLOATS, 2048, 2048), second))
assert sycl.ask("zeImageCreate", 0, first, image(PLANE, FLOATS, 1 << 20, 1 << 18), ctypes.c_long()) == 0x70000003
assert sycl.ask("zeImageCreate", 0, first, image(PLANE, BYTE, 0, 1), ctypes.c_long()) == 0x78000004
assert sycl.ask("zeImageDestroy", 4711) == sycl.ask("zeImageDestroy", 0) == 0x78000004
# One that lies in a block, which counts once; and one of another process's memory.
block = ctypes.c_long()
sycl.call("zeMemAllocDevice", 0, 0, 4 * MIB, 64, first, block)
in_block = ctypes.create_string_buffer(struct.pack("<I4xQQ", 0x0002001f, 0, block.value))
make(image(PLANE, BYTE, 1024, 1024, after=ctypes.addressof(in_block)))
by_file = ctypes.create_string_buffer(struct.pack("<I4xQIi", 0x19, 0, 1, 3))
of_other = make(image(PLANE, BYTE, 2048, 1024, after=ctypes.addressof(by_file)))
sycl.call("zeImageDestroy", make(image(PLANE, BYTE, 4096, 1024, after=ctypes.addressof(by_file))))
end(second=books(device=1))
"""


def test_images_are_recorded_by_what_the_driver_says_of_their_memory(record_ze):
    recorded = record_ze(IMAGES)
    said, analysis = recorded.said(), recorded.analysis()
    devices = {one["device"]: one for one in analysis["driver"]["devices"]}
    first, second = devices["xpu:0"]["end"], devices["xpu:1"]["end"]
    assert first["by_kind"]["arrays"] == 16 * MIB + 2 * MIB + 1000 * 1024 + 128
    assert second["by_kind"]["arrays"] == said["second"]["arrays"] == 2 * MIB
    # The two small ones share a page; that it is one of 2 MiB nobody tells.
    assert said["books"]["arrays"] == 20 * MIB and said["books"]["memory"] == first["by_kind"]["memory"] == 4 * MIB
    hidden = (2 * MIB - 1000 * 1024 - 128) + said["books"]["contexts"]
    assert sum(said["books"].values()) - first["explained_bytes"] == hidden
    assert sum(said["second"].values()) - second["explained_bytes"] == said["second"]["contexts"]
    assert named(first) == {"libur_adapter.so": 22 * MIB + 1000 * 1024}
    assert first["framework"]["libraries"] == [{"name": "libc10_xpu.so", "bytes": 128}]
    assert first["beside"]["imported_bytes"] == 2 * MIB and second["beside"]["imported_bytes"] == 0
    assert devices["xpu:1"]["peak"]["by_kind"]["arrays"] == 66 * MIB
    assert (devices["xpu:0"]["refused_count"], devices["xpu:1"]["refused_count"]) == (1, 0)
    assert analysis["lost"]["events"] == 0
    (refused,) = (one["size_bytes"] for one in recorded.events() if one["action"] == "oom")
    assert refused == (1 << 38) * 16


TWO = BEGIN + "make(image(PLANE, FLOATS, 1024, 1024)), make(image(PLANE, BYTE, 512, 4))\nend()\n"


def test_where_the_driver_does_not_say_they_are_losses_that_are_counted(record_ze):
    """Older drivers answer with the size of an element, or lack the extension."""
    for how in ("element", "silent"):
        recorded = record_ze(TWO, machine=how, FAKE_ZE_IMAGES=how)
        (device,) = recorded.analysis()["driver"]["devices"]
        assert device["end"]["by_kind"]["arrays"] == 0 and recorded.lost_in_driver() == 2, how


def test_the_program_sees_no_difference(record_ze):
    assert record_ze(IMAGES).said() == record_ze(IMAGES, "--no-driver", machine="another machine").said()
