"""What the device uses = what the recording says that it is made of: to the byte, against the fake driver's own books."""

import json

import harness
import jsonschema
import pytest

MIB = 1 << 20


def device_of(recorded):
    said = recorded.analysis()
    schema = json.loads((harness.ROOT / "docs" / "schemas" / "analysis.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(said)
    (device,) = said["driver"]["devices"]
    return device


def named(moment):
    return {one["name"]: one["bytes"] for one in moment["libraries"]}


EVERYTHING = """
import ctypes
runtime, blas, nccl, torch = library("libcudart.so.12"), library("libcublas.so.12"), library("libnccl.so.2", 0), library("libc10_cuda.so", 0)
runtime.begin()
kept = [runtime.malloc(1000), runtime.malloc(700 * 1024), runtime.malloc(21 * MIB + 5)]
runtime.free(runtime.malloc(64 * MIB))
blas.malloc(32 * MIB)
pitch = ctypes.c_size_t()
nccl.make("cuMemAllocPitch", pitch, 1000, 1000, 4, exported="cuMemAllocPitch_v2")

# Virtual memory: three handles; one released while it is mapped, one mapped twice, one gone.
prop = (ctypes.c_int * 8)(1, 0, 1, 0)
a, b, c = (torch.make("cuMemCreate", 20 * MIB * (i + 1), prop, 0) for i in range(3))
space = torch.make("cuMemAddressReserve", 1024 * MIB, 0, 0, 0)
torch.call("cuMemMap", space, 20 * MIB, 0, a, 0)
torch.call("cuMemRelease", a)
torch.call("cuMemMap", space + 64 * MIB, 40 * MIB, 0, b, 0)
torch.call("cuMemMap", space + 128 * MIB, 40 * MIB, 0, b, 0)
torch.call("cuMemUnmap", space + 64 * MIB, 40 * MIB)
torch.call("cuMemRelease", c)

# Pools: 40 MiB are asked for, the pool takes 64; after the synchronisation it keeps 32 for what is left.
first = runtime.make("cuMemAllocAsync", 39 * MIB, 0)
second = runtime.make("cuMemAllocAsync", MIB, 0, exported="cuMemAllocAsync_ptsz", flags=2)
runtime.call("cuMemFreeAsync", first, 0)
runtime.call("cuStreamSynchronize", 0)

# An array: 1,000 rows of 1,000 floats, each in 4,096 bytes of the fake's. A module. The printf buffer. A graph. A kernel.
blas.make("cuArrayCreate", (ctypes.c_long * 3)(1000, 1000, 1 << 32 | 0x20), exported="cuArrayCreate_v2")
blas.make("cuModuleLoadData", ctypes.create_string_buffer(b"FAKE-MODULE 3145728"))
runtime.call("cuCtxSetLimit", 1, 8 * MIB)
graph = runtime.make("cuGraphCreate", 0)
node = (ctypes.c_long * 15)(1, 1)
node[13] = 10 * MIB
executable = ctypes.c_long()
runtime.make("cuGraphAddMemAllocNode", graph, 0, 0, node)
runtime.call("cuGraphInstantiateWithFlags", executable, graph, 0)
runtime.call("cuGraphLaunch", executable.value, 0)
runtime.call("cuLaunchKernel", 0)

# What is not the device's, or not this process's.
runtime.make("cuMemAllocManaged", 100 * MIB, 1)
pinned = runtime.make("cuMemHostAlloc", 8 * MIB, 0)
runtime.call("cuMemFreeHost", runtime.make("cuMemHostAlloc", 16 * MIB, 0))
buffer = ctypes.create_string_buffer(2 * MIB)
runtime.call("cuMemHostRegister", buffer, 2 * MIB, 0, exported="cuMemHostRegister_v2")
assert runtime.code.open_imported(ctypes.byref(ctypes.c_long()), ctypes.c_long(4711), ctypes.c_long(48 * MIB)) == 0
used = runtime.device_used()
end(used=used)
"""


def test_it_adds_up_to_the_byte(record):
    recorded = record(EVERYTHING)
    said, device = recorded.said(), device_of(recorded)
    books, end = said["books"], device["end"]
    kinds = end["by_kind"]
    assert kinds["memory"] + end["rounding_bytes"] == books["memory"]
    assert kinds["memory"] == 1000 + 700 * 1024 + 21 * MIB + 5 + 32 * MIB + 1024 * 1000
    assert kinds["handles"] == books["handles"] == 60 * MIB
    assert kinds["pools"] == books["pools"] == 32 * MIB
    assert kinds["graphs"] == books["graphs"] == 10 * MIB
    assert kinds["arrays"] == 4_000_000
    assert end["modules_bytes"] == books["modules"] == 3 * MIB
    assert end["contexts_bytes"] == books["contexts"] + 8 * MIB  # with the printf buffer
    # What nobody can see: the padding of the array, the local memory of the kernel.
    hidden = books["arrays"] - kinds["arrays"] + 6 * MIB
    assert said["management"]["process"] == sum(books.values())
    assert said["management"]["process"] - end["explained_bytes"] == hidden
    # Of the device: the board's own processes, then the same sum. NVML counts the driver's reserve too.
    elsewhere, reserve = 20314 * MIB, 633 * MIB
    assert end["device_used_bytes"] == said["used"] == elsewhere + sum(books.values())
    assert end["device_used_bytes"] == said["management"]["device"] - reserve
    assert end["others_and_unexplained_bytes"] == elsewhere + hidden
    assert end["process_used_bytes"] is None and end["unknown"]["process_used"]


def test_every_library_has_its_bytes(record):
    recorded = record(EVERYTHING)
    end = device_of(recorded)["end"]
    # No framework's allocator is in this process: its runtime is a library like the others.
    assert named(end) == {
        "libcudart.so.12": 1000 + 700 * 1024 + 21 * MIB + 5 + 32 * MIB + 10 * MIB,
        "libcublas.so.12": 32 * MIB + 4_000_000,
        "libnccl.so.2": 1024 * 1000,
    }
    framework = end["framework"]
    assert framework["libraries"] == [{"name": "libc10_cuda.so", "bytes": 60 * MIB}]
    assert framework["bytes"] == 60 * MIB and framework["allocated_bytes"] is None
    parts = end["contexts_bytes"] + end["modules_bytes"] + end["libraries_bytes"] + end["rounding_bytes"]
    assert parts + framework["bytes"] == end["explained_bytes"]


def test_a_frameworks_memory_is_what_it_handed_out_and_what_it_keeps(record):
    recorded = record(
        """
        runtime, torch, blas = library("libcudart.so.12"), library("libc10_cuda.so", 0), library("libcublas.so.12")
        runtime.begin()
        segment = runtime.malloc(20 * MIB)
        torch.report(segment, 5 * MIB, 5 * MIB, 20 * MIB)
        torch.report(segment + 5 * MIB, 9 * MIB, 14 * MIB, 20 * MIB)
        blas.malloc(4 * MIB)
        other = torch.malloc(2 * MIB)  # by a part of the framework that is not its allocator
        torch.report(segment, -5 * MIB, 9 * MIB, 20 * MIB)
        end()
        """
    )
    device = device_of(recorded)
    end, peak = device["end"], device["peak"]
    assert named(end) == {"libcublas.so.12": 4 * MIB}
    assert {one["name"]: one["bytes"] for one in end["framework"].pop("libraries")} == {
        "libcudart.so.12": 20 * MIB, "libc10_cuda.so": 2 * MIB,
    }  # fmt: skip
    assert end["framework"] == {
        "bytes": 22 * MIB, "allocated_bytes": 9 * MIB, "cached_bytes": 11 * MIB, "unservable_bytes": 11 * MIB,
        "beside_bytes": 2 * MIB,
    }  # fmt: skip
    assert (peak["framework"]["allocated_bytes"], peak["framework"]["cached_bytes"]) == (9 * MIB, 11 * MIB)
    assert end["explained_bytes"] == sum(recorded.said()["books"].values())
    # The framework's memory stays the headline, and is counted once.
    (shown,) = (one for one in recorded.analysis()["devices"] if one["device"] == "cuda:0")
    assert shown["peak"]["allocated_bytes"] == 14 * MIB


def test_what_is_no_memory_of_the_device_is_told_apart(record):
    recorded = record(EVERYTHING)
    analysis = recorded.analysis()
    end = analysis["driver"]["devices"][0]["end"]
    assert end["beside"] == {
        "managed_bytes": 100 * MIB, "imported_bytes": 48 * MIB, "blocks_in_pools_bytes": MIB,
        "address_space_bytes": 1024 * MIB, "mapped_bytes": 60 * MIB,
    }  # fmt: skip
    (host,) = analysis["driver"]["hosts"]
    assert (host["pinned_bytes"], host["pinned_peak_bytes"]) == (8 * MIB, 24 * MIB)
    assert (host["registered_bytes"], host["registered_peak_bytes"]) == (2 * MIB, 2 * MIB)
    # None of it is a memory beside the framework's.
    assert all(one["layer"] != "driver" for one in analysis["devices"])


def test_the_peak_is_when_the_most_was_taken(record):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin()
        big = runtime.malloc(100 * MIB)
        at_peak = books()
        runtime.free(big)
        runtime.malloc(10 * MIB)
        end(peak=at_peak)
        """
    )
    said, device = recorded.said(), device_of(recorded)
    assert device["peak"]["by_kind"]["memory"] == said["peak"]["memory"] == 100 * MIB
    assert device["peak"]["explained_bytes"] == sum(said["peak"].values())
    assert device["end"]["by_kind"]["memory"] == 10 * MIB


def test_a_context_that_ends_takes_its_memory_with_it(record):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin()
        runtime.malloc(10 * MIB)
        runtime.make("cuMemAllocAsync", 10 * MIB, 0)
        runtime.call("cuDevicePrimaryCtxReset", 0, exported="cuDevicePrimaryCtxReset_v2")
        end()
        """
    )
    assert sum(recorded.said()["books"].values()) == 0
    assert device_of(recorded)["end"]["explained_bytes"] == 0


def test_what_was_refused_is_counted(record):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin()
        assert runtime.ask("cuMemAlloc", ctypes.c_long(), 1 << 40, exported="cuMemAlloc_v2") == 2
        assert runtime.ask("cuMemFree", 12345, exported="cuMemFree_v2") == 1
        end()
        """
    )
    device = device_of(recorded)
    assert device["refused_count"] == 1 and device["end"]["by_kind"]["memory"] == 0
    assert recorded.analysis()["lost"]["events"] == 0


def test_without_the_management_library_a_context_is_unknown_and_says_so(record, machine):
    recorded = record(
        """
        import json
        runtime = library("libcudart.so.12")
        runtime.begin()
        runtime.malloc(10 * MIB)
        print(json.dumps(books()), flush=True)
        os._exit(0)
        """,
        env=machine(management=False),
    )
    end = device_of(recorded)["end"]
    assert end["contexts_bytes"] is None
    assert end["unknown"]["contexts"] == "the device could not be sampled before a context was created"
    assert end["explained_bytes"] is None and end["unknown"]["explained"] == "the size of a context is unknown and would be part of it"
    assert end["by_kind"]["memory"] == 10 * MIB
    assert "contexts" in recorded.text() and "unknown, because" not in recorded.text().split("contexts")[0]


def test_in_words(record):
    recorded = record(EVERYTHING)
    for samples in recorded.folder.glob("*.gms"):  # on a slow machine one may have been taken in between
        samples.unlink()
    text = recorded.text()
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("The CUDA driver: cuda:0 "))
    table = {line[:42].strip(): line[42:].strip() for line in lines[at + 1 : at + 20]}
    assert table["libcublas.so.12"] == "35.8 MiB" and table["libnccl.so.2"] == "1000 KiB"
    assert table["contexts"] == "504 MiB  an estimate"
    assert table["this process"].startswith("unknown  because the recording has no sample of this process's use")
    assert table["reserved address space without memory"] == "964 MiB"
    assert "No framework allocated memory; driver allocations are listed below." in text


@pytest.mark.parametrize("stacks", ["none", "native"])
def test_libraries_are_known_without_python_stacks(record, stacks):
    recorded = record(EVERYTHING, "--stacks", stacks)
    assert named(device_of(recorded)["end"])["libcublas.so.12"] == 32 * MIB + 4_000_000
