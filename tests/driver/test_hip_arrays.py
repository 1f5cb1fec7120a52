"""HIP's arrays, memory of three dimensions and graphs: by a fake of ours over the same machine, to the byte. In the fake rows
begin at multiples of 512 bytes and memory comes in pages of 2 MiB, so which sizes are exact is arithmetic."""

from fake_machine import hip_environment
from test_identity import device_of, named

MIB = 1 << 20

ARRAYS = """
import struct
torch, rccl, blas = library("libc10_hip.so"), library("librccl.so.1"), library("librocblas.so.4")
FLOAT, HALF = 2, 2
def channels(*bits, kind=FLOAT):
    return (ctypes.c_int * 5)(*bits, *[0] * (4 - len(bits)), kind)
def flat(width, height, form, count):
    return ctypes.create_string_buffer(struct.pack("<QQiI", width, height, form, count))
def deep(width, height, depth, form, count, flags):
    return ctypes.create_string_buffer(struct.pack("<QQQiII", width, height, depth, form, count, flags))
def by_value(function, *arguments, words=1):
    out = (ctypes.c_long * 4)()
    numbers = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    code = getattr(blas.code, function)(out, *numbers)
    return (code, out[0], out[1])
"""

KEPT = ARRAYS + """
# Whole pages: 1024 rows of 8 KiB, one row of 2 MiB, 2048 rows of 2 KiB, 2048 rows of 1 KiB.
blas.make("hipMallocArray", channels(32, 32), 1024, 1024, 0)
blas.make("hipMallocArray", channels(32, 32, 32, 32), 131072, 0, 0)
assert by_value("malloc_3d_array", channels(16, kind=HALF), 1024, 512, 4, 1)[0] == 0
blas.make("hipArray3DCreate", deep(512, 256, 8, 0x08, 2, 0))
# 1000 rows of 4000 bytes; levels of 4 MiB, 1 MiB and 256 KiB: the rest of their rows and pages nobody tells.
blas.make("hipArrayCreate", flat(1000, 1000, 0x20, 1))
assert by_value("malloc_mipmapped", channels(32, 32, 32, 32), 512, 512, 3)[0] == 0
# Four layers of 512 and 256 rows: layers do not get fewer. And of a depth of 4, which does: 4 of 512 rows, 2 of 256.
blas.make("hipMipmappedArrayCreate", deep(512, 512, 4, 0x20, 1, 1), 2)
blas.make("hipMipmappedArrayCreate", deep(512, 512, 4, 0x20, 1, 0), 2)
# 200 rows of 1000 bytes, which are 1024 apart.
code, address, pitch = by_value("malloc_3d", 1000, 10, 20)
assert (code, pitch) == (0, 1024) and address

# What is gone again, what is refused, and what is none.
for free in ("hipFreeArray", "hipArrayDestroy"):
    rccl.call(free, rccl.make("hipMallocArray", channels(32), 4096, 4096, 0))
for free in ("hipFreeMipmappedArray", "hipMipmappedArrayDestroy"):
    rccl.call(free, rccl.make("hipMipmappedArrayCreate", deep(1024, 1024, 0, 0x20, 1, 0), 2))
assert by_value("malloc_3d", 4096, 4096, 0)[:2] == (0, 0) and by_value("malloc_3d", 0, 1, 1)[:2] == (0, 0)
assert rccl.ask("hipMallocArray", ctypes.c_long(), channels(32), 0, 0, 0) == 1
assert rccl.ask("hipFreeArray", 0) != 0 and rccl.ask("hipFreeMipmappedArray", 0) != 0 and rccl.ask("hipArrayDestroy", 4711) != 0
huge = 1 << 20
assert by_value("malloc_3d", huge, huge, 1)[0] == 2 and by_value("malloc_3d_array", channels(32), huge, huge, 1, 0)[0] == 2
assert by_value("malloc_mipmapped", channels(32), huge, huge, 1)[0] == 2
assert rccl.ask("hipArray3DCreate", ctypes.c_long(), deep(huge, huge, 1, 0x20, 1, 0)) == 2
end(used=torch.device_used())
"""

EXACT = 8 * MIB + 2 * MIB + 4 * MIB + 2 * MIB
TOLD = EXACT + 4_000_000 + (4 * MIB + MIB + MIB // 4) + (4 * MIB + MIB) + (4 * MIB + MIB // 2)
IN_PAGES = EXACT + 4 * MIB + 6 * MIB + 6 * MIB + 6 * MIB  # 4,096,000, and what is told of the others


def test_arrays_are_recorded_by_their_descriptors(record_hip):
    recorded = record_hip(KEPT)
    said, device = recorded.said(), device_of(recorded)
    books, end = said["books"], device["end"]
    kinds = end["by_kind"]
    assert kinds["arrays"] == TOLD
    assert books["arrays"] == IN_PAGES
    assert kinds["memory"] == 200 * 1024 and kinds["memory"] + end["rounding_bytes"] == books["memory"] == 2 * MIB
    assert named(end) == {"librocblas.so.4": TOLD + 200 * 1024}, "nothing is left of what librccl gave back"
    # The padding of rows and pages, and the context, which HIP makes without a call that says so.
    hidden = (IN_PAGES - TOLD) + books["contexts"]
    assert sum(books.values()) - end["explained_bytes"] == hidden
    assert end["device_used_bytes"] == said["used"] and device["refused_count"] == 4
    assert recorded.analysis()["lost"]["events"] == 0


def test_what_was_given_back_was_counted_until_then(record_hip):
    recorded = record_hip(ARRAYS + """
block = rccl.make("hipMallocArray", channels(32), 4096, 4096, 0)
mipmapped = rccl.make("hipMipmappedArrayCreate", deep(1024, 1024, 0, 0x20, 1, 0), 2)
rccl.call("hipFreeArray", block)
assert rccl.ask("hipArrayDestroy", block) != 0
end()
""")  # fmt: skip
    device = device_of(recorded)
    assert device["peak"]["by_kind"]["arrays"] == 64 * MIB + 5 * MIB
    assert device["end"]["by_kind"]["arrays"] == 5 * MIB and recorded.said()["books"]["arrays"] == 6 * MIB


def test_what_has_a_size_that_nobody_tells_is_a_loss_that_is_counted(record_hip):
    recorded = record_hip(ARRAYS + """
for strange in (channels(32, kind=7), channels(32, 32, kind=3), channels(32, -1), channels(1000)):
    blas.make("hipMallocArray", strange, 1024, 1024, 0)
blas.make("hipArrayCreate", flat(1024, 1024, 0xb0, 1))
assert blas.code.open_imported(ctypes.byref(ctypes.c_long()), ctypes.c_long(4711), ctypes.c_long(0)) == 0
end()
""")  # fmt: skip
    end = device_of(recorded)["end"]
    assert end["by_kind"]["arrays"] == end["beside"]["imported_bytes"] == 0 and recorded.lost_in_driver() == 6


GRAPHS = """
torch, blas = library("libc10_hip.so"), library("librocblas.so.4")
def graph(size, function="hipGraphAddMemAllocNode", launch="hipGraphLaunch"):
    made, executable = blas.make("hipGraphCreate", 0), ctypes.c_long()
    first = 0 if function == "hipGraphAddMemAllocNode" else 2
    node = (ctypes.c_long * 17)(*[10] * bool(first))
    node[first] = node[first + 1] = 1
    node[first + 13] = size
    blas.make(function, made, 0, 0, node)
    blas.call("hipGraphInstantiateWithFlags", executable, made, 0)
    return blas.ask(launch, executable.value, 0)
"""


def test_the_memory_of_graphs_is_what_the_run_time_says_they_have(record_hip):
    recorded = record_hip(GRAPHS + """
assert graph(10 * MIB) == 0 and graph(30 * MIB, "hipGraphAddNode") == 0
at_peak = books()
assert graph(1 << 40) == 2
torch.call("hipDeviceGraphMemTrim", 0)
trimmed = books()
assert graph(6 * MIB, launch="hipGraphLaunch_spt") == 0
end(peak=at_peak, trimmed=trimmed, used=torch.device_used())
""")  # fmt: skip
    said, device = recorded.said(), device_of(recorded)
    end = device["end"]
    assert device["peak"]["by_kind"]["graphs"] == said["peak"]["graphs"] == 30 * MIB and said["trimmed"]["graphs"] == 0
    assert end["by_kind"]["graphs"] == said["books"]["graphs"] == 6 * MIB
    assert named(end) == {"librocblas.so.4": 6 * MIB}
    assert sum(said["books"].values()) - end["explained_bytes"] == said["books"]["contexts"]
    assert recorded.analysis()["lost"]["events"] == 0


def test_the_program_sees_no_difference(record_hip, tmp_path):
    fresh = {**hip_environment(tmp_path), "FAKE_GPU_STATE": str(tmp_path / "another machine")}
    code = KEPT.replace("end(used", "errno = torch.code.errno_after_malloc(ctypes.byref(ctypes.c_long()), ctypes.c_long(1 << 40))\nend(errno=errno, used")
    assert record_hip(code).said() == record_hip(code, "--no-driver", env=fresh, name="without").said()


def test_a_synchronisation_of_an_event_or_of_a_threads_stream_shows_what_pools_gave_back(record_hip):
    recorded = record_hip("""
torch, blas = library("libc10_hip.so"), library("librocblas.so.4")
blas.call("hipFreeAsync", blas.make("hipMallocAsync", 39 * MIB, 0), 0)
blas.call("hipEventSynchronize", 0)
after_event = books()
blas.call("hipFreeAsync", blas.make("hipMallocAsync", MIB, 0), 0)
blas.call("hipStreamSynchronize_spt", 0)
pitch = ctypes.c_size_t()
blas.make("hipMemAllocPitch", pitch, 1000, 100, 4)
end(after_event=after_event)
""")  # fmt: skip
    said, end = recorded.said(), device_of(recorded)["end"]
    assert said["after_event"]["pools"] == said["books"]["pools"] == end["by_kind"]["pools"] == 0
    assert end["by_kind"]["memory"] == 1024 * 100
