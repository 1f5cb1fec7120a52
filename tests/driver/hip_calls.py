"""What the recorded programs of test_hip.py use: HIP's run time through libraries that are linked to it."""

import ctypes
import json
import os
import sys

from driver_calls import MIB, books  # noqa: F401


class Library:
    def __init__(self, path):
        self.code = ctypes.CDLL(path)

    def ask(self, function, *arguments):
        values = (ctypes.c_long * 6)(*[a if isinstance(a, int) else ctypes.addressof(a) for a in arguments])
        return getattr(self.code, "call_" + function)(values)

    def call(self, function, *arguments):
        code = self.ask(function, *arguments)
        assert code == 0, (function, code)

    def make(self, function, *arguments):
        """What a function that has a pointer to its result first makes."""
        out = ctypes.c_long()
        self.call(function, out, *arguments)
        return out.value

    def device_used(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("hipMemGetInfo", free, total)
        return total.value - free.value


def library(name):
    return Library(os.path.join(sys.argv[1], name))


def end(**more):
    print(json.dumps({"books": books(), **more}), flush=True)
    os._exit(0)
