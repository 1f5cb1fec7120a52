"""What a context has goes with it."""

MIB = 1 << 20

CONTEXT = """
runtime = library("libcudart.so.12")
runtime.call("cuInit", 0)
"""


def end_of(recorded):
    (device,) = recorded.analysis()["driver"]["devices"]
    return device["end"]


def test_a_destroyed_context_takes_its_limits_along(record):
    recorded = record(
        CONTEXT
        + """
context = runtime.make("cuCtxCreate", 0, 0, exported="cuCtxCreate_v2")
runtime.malloc(10 * MIB)
for limit in (1, 9): runtime.call("cuCtxSetLimit", limit, 8 * MIB)
runtime.call("cuCtxDestroy", context, exported="cuCtxDestroy_v2")
end()
"""
    )
    end = end_of(recorded)
    assert (end["contexts_bytes"], end["by_kind"]["memory"], end["explained_bytes"]) == (0, 0, 0)


def test_the_limits_of_another_context_stay(record):
    recorded = record(
        CONTEXT
        + """
first = runtime.make("cuCtxCreate", 0, 0, exported="cuCtxCreate_v2")
runtime.call("cuCtxSetLimit", 1, 8 * MIB)
second = runtime.make("cuCtxCreate", 0, 0, exported="cuCtxCreate_v2")
runtime.call("cuCtxSetLimit", 1, 4 * MIB)
runtime.call("cuCtxDestroy", second, exported="cuCtxDestroy_v2")
assert runtime.ask("cuCtxDestroy", 0, exported="cuCtxDestroy_v2") != 0
end()
"""
    )
    end, books = end_of(recorded), recorded.said()["books"]
    assert end["contexts_bytes"] == books["contexts"] + 8 * MIB


def test_a_primary_context_takes_its_limits_along(record):
    recorded = record(
        CONTEXT
        + """
runtime.begin()
runtime.malloc(10 * MIB)
runtime.call("cuCtxSetLimit", 1, 8 * MIB)
runtime.call("cuDevicePrimaryCtxReset", 0, exported="cuDevicePrimaryCtxReset_v2")
end()
"""
    )
    assert end_of(recorded)["explained_bytes"] == 0


def test_a_block_that_was_refused_stays_its_first_owners(record):
    recorded = record(
        CONTEXT
        + """
runtime.begin()
blas, other = library("libcublas.so.12"), library("libmine.so")
blas.make("cuMemAllocAsync", 5 * MIB, 0)
assert other.ask("cuMemPoolDestroy", other.make("cuDeviceGetDefaultMemPool", 0)) == 1  # it is the device's
end()
"""
    )
    assert end_of(recorded)["libraries"] == [{"name": "libcublas.so.12", "bytes": 32 * MIB}]


def test_an_array_of_a_format_of_unknown_size_is_counted_as_lost(record):
    recorded = record(
        CONTEXT
        + """
runtime.begin()
runtime.make("cuArrayCreate", (ctypes.c_long * 3)(1000, 1000, 1 << 32 | 0x91), exported="cuArrayCreate_v2")
end()
"""
    )
    assert end_of(recorded)["by_kind"]["arrays"] == 0 and recorded.lost_in_driver() == 1
    assert "by_kind.arrays" in end_of(recorded)["estimates"]
