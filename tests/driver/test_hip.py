"""HIP's run time, by a fake of ours over the same machine: recorded to the byte with the library that called, and otherwise
as if nobody stood before it. No AMD device took part."""

import os

import harness
from fake_machine import environment, hip_environment
from live_program import holding
from test_identity import device_of, named
from test_live_sums import picture_of

MIB = 1 << 20

EVERYTHING = """
torch, rccl, blas = library("libc10_hip.so"), library("librccl.so.1"), library("librocblas.so.4")
kept = [torch.make("hipMalloc", 1000), torch.make("hipMalloc", 21 * MIB + 5)]
torch.call("hipFree", torch.make("hipMalloc", 64 * MIB))
torch.call("hipFree", 0)
assert torch.make("hipMalloc", 0) == 0
rccl.make("hipExtMallocWithFlags", 32 * MIB, 1)
pitch = ctypes.c_size_t()
rccl.make("hipMallocPitch", pitch, 1000, 1000)

prop = (ctypes.c_int * 8)(1, 0, 1, 0)
a, b = (torch.make("hipMemCreate", 20 * MIB * (i + 1), prop, 0) for i in range(2))
space = torch.make("hipMemAddressReserve", 1024 * MIB, 0, 0, 0)
torch.call("hipMemMap", space, 20 * MIB, 0, a, 0)
torch.call("hipMemRelease", a)
torch.call("hipMemRelease", b)

first = blas.make("hipMallocAsync", 39 * MIB, 0)
second = blas.make("hipMallocAsync", MIB, 0)
blas.call("hipFreeAsync", first, 0)
blas.call("hipStreamSynchronize", 0)
blas.make("hipModuleLoadData", ctypes.create_string_buffer(b"FAKE-MODULE 3145728"))
blas.call("hipModuleUnload", blas.make("hipModuleLoadData", ctypes.create_string_buffer(b"FAKE-MODULE 4194304")))

torch.make("hipMallocManaged", 100 * MIB, 1)
torch.make("hipHostMalloc", 8 * MIB, 0)
torch.call("hipHostFree", torch.make("hipHostMalloc", 16 * MIB, 0))
buffer = ctypes.create_string_buffer(2 * MIB)
torch.call("hipHostRegister", buffer, 2 * MIB, 0)
imported = ctypes.c_long()
assert rccl.code.open_imported(ctypes.byref(imported), ctypes.c_long(4711), ctypes.c_long(48 * MIB)) == 0
assert torch.ask("hipMalloc", ctypes.c_long(), 1 << 40) == 2
used = torch.device_used()
end(used=used, tomorrow=torch.ask("hipOfTomorrow", 7, 5), errno=torch.code.errno_after_malloc(ctypes.byref(ctypes.c_long()), ctypes.c_long(1 << 40)))
"""


def test_every_byte_is_recorded_with_its_library(record_hip):
    recorded = record_hip(EVERYTHING)
    said, device = recorded.said(), device_of(recorded)
    books, end = said["books"], device["end"]
    kinds = end["by_kind"]
    assert kinds["memory"] == 1000 + 21 * MIB + 5 + 32 * MIB + 1024 * 1000
    assert kinds["memory"] + end["rounding_bytes"] == books["memory"]
    assert kinds["handles"] == books["handles"] == 20 * MIB and kinds["pools"] == books["pools"] == 32 * MIB
    assert end["modules_bytes"] == books["modules"] == 3 * MIB
    assert named(end) == {"librccl.so.1": 32 * MIB + 1024 * 1000, "librocblas.so.4": 32 * MIB}
    assert {one["name"]: one["bytes"] for one in end["framework"]["libraries"]} == {
        "libc10_hip.so": 1000 + 21 * MIB + 5 + 20 * MIB,
    }  # fmt: skip
    # A context is made without a call that says so: it stays in what is not explained.
    assert sum(books.values()) - end["explained_bytes"] == books["contexts"]
    assert end["device_used_bytes"] == said["used"] and device["refused_count"] == 2
    assert end["beside"] == {
        "managed_bytes": 100 * MIB, "imported_bytes": 48 * MIB, "blocks_in_pools_bytes": MIB,
        "address_space_bytes": 1024 * MIB, "mapped_bytes": 20 * MIB,
    }  # fmt: skip
    (host,) = recorded.analysis()["driver"]["hosts"]
    assert (host["pinned_bytes"], host["pinned_peak_bytes"], host["registered_bytes"]) == (8 * MIB, 24 * MIB, 2 * MIB)
    assert recorded.analysis()["lost"]["events"] == 0


def test_the_program_sees_no_difference(record_hip, tmp_path):
    recorded = record_hip(EVERYTHING)
    assert recorded.done.stderr.count(b"version information") == 0, recorded.done.stderr
    fresh = {**hip_environment(tmp_path), "FAKE_GPU_STATE": str(tmp_path / "another machine")}
    said, without = recorded.said(), record_hip(EVERYTHING, "--no-driver", env=fresh, name="without")
    assert said == without.said()
    assert said["tomorrow"] == 7005, "what nobody has heard of is answered by the real one"
    assert not list(without.folder.glob("*.gmp")), "nothing of it was seen"


def test_where_hip_is_not_installed_nothing_is_preloaded(tmp_path):
    env = environment(tmp_path, driver=False)
    argv = [harness.COMMAND, "run", "-o", str(tmp_path / "r"), "--", "sh", "-c", "echo $LD_PRELOAD"]
    if not os.path.exists("/dev/kfd"):
        assert "hip" not in harness.execute(argv, env=env).ok().stdout.decode()
    env = hip_environment(tmp_path)
    assert "/libgpumemprof_hip.so" in harness.execute([*argv[:3], str(tmp_path / "s"), *argv[4:]], env=env).ok().stdout.decode()


def test_a_recording_within_a_recording_has_it_once(tmp_path, hip_libraries):
    env = hip_environment(tmp_path)
    inner = [harness.COMMAND, "run", "-o", str(tmp_path / "inner"), "--", "sh", "-c", "echo $LD_PRELOAD"]
    done = harness.execute([harness.COMMAND, "run", "-o", str(tmp_path / "outer"), "--", *inner], env=env).ok()
    assert done.stdout.decode().count("libgpumemprof_hip.so") == 1


def test_the_sum_is_live_too(tmp_path, hip_libraries):
    """The framework's allocator says "cuda" on ROCm as well; the fake NVML stands for what tells of the device."""
    code = """
    import json, sys
    torch, rccl = library("libc10_hip.so"), library("librccl.so.1")
    torch.make("hipMalloc", 20 * MIB)
    rccl.make("hipMalloc", 6 * MIB)
    torch.device_used()
    print(json.dumps({"books": books(), "pid": os.getpid()}), flush=True)
    sys.stdin.readline()
    os._exit(0)
    """
    with holding(tmp_path / "program", hip_environment(tmp_path), hip_libraries, code, module="hip_calls") as standing:
        (device,) = picture_of(standing)["driver"]["devices"]
        now = device["now"]
        assert device["accelerator"] == "nvidia:0" and now["process_used_bytes"] == sum(standing.books.values())
        assert now["libraries"] == [{"name": "librccl.so.1", "bytes": 6 * MIB}]
        assert now["unexplained_bytes"] == standing.books["contexts"]
