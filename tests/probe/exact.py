"""The C API of the probe from Python, for the programs of these tests. As a program: python exact.py FILE NAME MODE

runs function NAME of FILE and prints what it returns as JSON. MODE is `preload` (the library is there already) or
`attach` (it is opened and attached after `import torch`).
"""
import contextlib
import ctypes
import importlib.util
import json
import os
import sys
from pathlib import Path

CURRENT_CONTEXT = ctypes.c_void_p(-1)
CPU = 0


class Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "live_bytes", "alloc_count", "free_count", "alloc_bytes", "free_bytes", "unknown_free_count", "untracked_count")]


class ScopeResult(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "start_live_bytes", "end_live_bytes", "peak_live_bytes",
        "own_alloc_count", "own_free_count", "own_alloc_bytes", "own_free_bytes")] + [
        ("own_peak_bytes", ctypes.c_int64), ("untracked_count", ctypes.c_uint64)]


def as_dict(structure):
    return {name: getattr(structure, name) for name, _ in structure._fields_}


def library():
    """The probe's file: GPUMEMPROF_PROBE, or the one that `make` installs."""
    root = Path(__file__).resolve().parent.parent.parent
    return os.environ.get("GPUMEMPROF_PROBE", str(root / ".venv" / "lib" / "libgpumemprof_probe.so"))


class Api:
    """The functions of gpumemprof.h."""

    def __init__(self, path=None):
        self.lib = ctypes.CDLL(path)
        self.lib.gpumemprof_attach.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self.lib.gpumemprof_attach_error.restype = ctypes.c_char_p
        self.lib.gpumemprof_event_count.restype = ctypes.c_uint64
        self.lib.gpumemprof_scope_begin.restype = ctypes.c_uint64
        self.lib.gpumemprof_scope_begin.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
        self.lib.gpumemprof_scope_end.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
        self.lib.gpumemprof_scope_switch_in.argtypes = [ctypes.c_uint64]
        self.lib.gpumemprof_scope_switch_out.argtypes = [ctypes.c_uint64]
        self.counting_begin = self.lib.gpumemprof_counting_begin
        self.switch_in = self.lib.gpumemprof_scope_switch_in
        self.switch_out = self.lib.gpumemprof_scope_switch_out

    def attach(self, folder=None, flags=0):
        """"" where it worked, else why not."""
        done = self.lib.gpumemprof_attach(folder and os.fsencode(folder), flags)
        error = self.lib.gpumemprof_attach_error().decode()
        assert (done == 1) == (error == ""), (done, error)
        return error

    def read(self, device_type=CPU, index=-1):
        """The counters as a dictionary; None where the device is not known."""
        out = Counters()
        return as_dict(out) if self.lib.gpumemprof_read_counters(device_type, index, ctypes.byref(out)) else None

    def begin(self, context=None):
        return self.lib.gpumemprof_scope_begin(CPU, -1, context)

    def end(self, scope):
        """The result as a dictionary with `status`, what the function returned."""
        out = ScopeResult()
        status = self.lib.gpumemprof_scope_end(scope, ctypes.byref(out))
        return as_dict(out) | {"status": status}

    @contextlib.contextmanager
    def scope(self, context=None):
        """A dictionary that is filled when the block ends, also with an exception."""
        result = {}
        opened = self.begin(context)
        try:
            yield result
        finally:
            result.update(self.end(opened))


def start(mode):
    """The API in a process with torch (or, in a Python without it, with its allocator), counting."""
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401  (attaching wants it loaded)

    api = Api(None if mode == "preload" else library())
    if mode == "attach":
        assert api.counting_begin() == 0, "it cannot count before it is attached"
        assert api.attach() == ""
    assert api.counting_begin() == 1
    return api


def main():
    file, name, mode = sys.argv[1:4]
    spec = importlib.util.spec_from_file_location("programs", file)
    programs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(programs)
    print(json.dumps(getattr(programs, name)(start(mode))))


if __name__ == "__main__":
    main()
