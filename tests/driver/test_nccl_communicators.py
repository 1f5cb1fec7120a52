"""NCCL's memory by the driver's calls: the bytes of the device and of the host that are its, and nothing where they are few."""

MIB = 1 << 20
PROGRAM = """
runtime, nccl, torch = library("libcudart.so.12"), library("libnccl.so.2", 0), library("libc10_cuda.so", 0)
runtime.begin()
torch.malloc({torch} * MIB)
for _ in range({communicators}):
    nccl.malloc({each} * MIB)
    nccl.make("cuMemHostAlloc", {pinned} * MIB, 0)
runtime.make("cuMemHostAlloc", 8 * MIB, 0)
end()
"""


def findings(record, **sizes):
    recorded = record(PROGRAM.format(**sizes))
    return [f for f in recorded.analysis()["findings"] if f["kind"] == "nccl_communicators"]


def test_what_communicators_take_of_device_and_host_is_told(record):
    (finding,) = findings(record, torch=600, communicators=3, each=180, pinned=9)
    assert finding["severity"] == "info" and finding["bytes"] == 3 * 180 * MIB
    assert finding["evidence"] == {
        "nccl_bytes": 540 * MIB, "nccl_at_end_bytes": 540 * MIB, "nccl_pinned_host_bytes": 27 * MIB, "driver_bytes": 1140 * MIB,
    }  # fmt: skip


def test_a_small_communicator_is_not(record):
    assert findings(record, torch=2000, communicators=1, each=64, pinned=4) == []


def test_a_job_without_nccl_has_none(record):
    assert findings(record, torch=600, communicators=0, each=1, pinned=1) == []
