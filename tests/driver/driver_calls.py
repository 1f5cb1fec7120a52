"""What the recorded programs of these tests use: the driver through libraries of known names, and the fake's own books."""

import ctypes
import json
import os
import struct
import sys

MIB = 1 << 20
USES = ("contexts", "modules", "memory", "arrays", "handles", "pools", "graphs", "hidden")


class Library:
    """A library that calls the driver. `how` is 1 for the runtime's way and 0 for PyTorch's."""

    def __init__(self, path, how=1, name="libcuda.so.1"):
        self.code, self.how, self.name = ctypes.CDLL(path), how, name.encode()

    def ask(self, function, *arguments, exported=None, flags=0):
        values = (ctypes.c_long * 6)(*[a if isinstance(a, int) else ctypes.addressof(a) for a in arguments])
        exported = (exported or function).encode()
        return self.code.call_driver(self.name, function.encode(), exported, self.how, ctypes.c_long(flags), values)

    def call(self, function, *arguments, exported=None, flags=0):
        code = self.ask(function, *arguments, exported=exported, flags=flags)
        assert code == 0, (function, code)

    def make(self, function, *arguments, exported=None, flags=0):
        """What a function that has a pointer to its result first makes."""
        out = ctypes.c_long()
        self.call(function, out, *arguments, exported=exported, flags=flags)
        return out.value

    def malloc(self, size):
        return self.make("cuMemAlloc", size, exported="cuMemAlloc_v2")

    def free(self, address):
        self.call("cuMemFree", address, exported="cuMemFree_v2")

    def report(self, address, size, allocated, reserved):
        """As a framework's allocator tells of a block, or of its free, with its totals."""
        assert self.code.report_block(*map(ctypes.c_ulong, (address, size, allocated, reserved)))

    def begin(self, device=0):
        """A context, as the runtime makes one."""
        self.call("cuInit", 0)
        self.call("cuCtxSetCurrent", self.make("cuDevicePrimaryCtxRetain", device))

    def device_used(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo", free, total, exported="cuMemGetInfo_v2")
        return total.value - free.value


def books(pid=None, device=0):
    """What the fake itself counts for a process."""
    with open(os.environ["FAKE_GPU_STATE"], "rb") as file:
        data = file.read()
    begin = 16 + 8 * 24
    for at in range(begin, begin + 64 * 520, 520):
        if struct.unpack_from("<Q", data, at)[0] == (pid or os.getpid()):
            return dict(zip(USES, struct.unpack_from("<8Q", data, at + 8 + device * 64)))
    return None


def management():
    """By the fake NVML: what the device has in use, and what it says this process uses."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    handle, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
    nvml.nvmlDeviceGetMemoryInfo(handle, memory)
    count, entries = ctypes.c_uint(16), (ctypes.c_uint64 * 48)()
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), entries) == 0
    used = {entries[3 * i] & 0xFFFFFFFF: entries[3 * i + 1] for i in range(count.value)}
    return {"device": memory[2], "process": used.get(os.getpid())}


def end(**more):
    """Tells the test what is true now, and is gone without freeing anything."""
    print(json.dumps({"books": books(), "management": management(), **more}), flush=True)
    os._exit(0)


def library(name, how=1, opened="libcuda.so.1"):
    return Library(os.path.join(sys.argv[1], name), how, opened)
