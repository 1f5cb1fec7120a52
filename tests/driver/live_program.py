"""A recorded program on the fake machine that stands still and can be looked at."""

import contextlib
import json
import subprocess
import sys
import textwrap

import harness

# What it holds, to the byte: an allocator with a hole that a block pins and a segment that is whole, a library's own, one
# module, and 6 MiB that no call tells of.
HOLDING = """
import json, sys
runtime, torch, blas = library("libcudart.so.12"), library("libc10_cuda.so", 0), library("libcublas.so.12")
runtime.begin()
pinned, whole = runtime.malloc(20 * MIB), runtime.malloc(8 * MIB)
torch.report(pinned, 5 * MIB, 5 * MIB, 28 * MIB)
torch.report(pinned + 5 * MIB, 9 * MIB, 14 * MIB, 28 * MIB)
torch.report(whole, 8 * MIB, 22 * MIB, 28 * MIB)
torch.report(pinned, -5 * MIB, 17 * MIB, 28 * MIB)
torch.report(whole, -8 * MIB, 9 * MIB, 28 * MIB)
blas.malloc(32 * MIB)
blas.make("cuModuleLoadData", ctypes.create_string_buffer(b"FAKE-MODULE 3145728"))
runtime.call("cuLaunchKernel", 0)
print(json.dumps({"books": books(), "pid": os.getpid()}), flush=True)
sys.stdin.readline()
os._exit(0)
"""


class Holding:
    def __init__(self, folder, env, said):
        self.folder, self.env, self.pid, self.books = folder, env, said["pid"], said["books"]
        self.said = said


@contextlib.contextmanager
def holding(folder, env, libraries, code=HOLDING, options=(), module="driver_calls"):
    """The program while it waits."""
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(f"from {module} import *\n" + textwrap.dedent(code))
    argv = [harness.COMMAND, "run", "--quiet", "-o", str(folder / "r"), *options, "--", sys.executable, str(program)]
    with subprocess.Popen([*argv, str(libraries)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env,
                          text=True) as process:  # fmt: skip
        line = process.stdout.readline()
        try:
            yield Holding(folder / "r", env, json.loads(line))
        finally:
            process.communicate("\n", timeout=60)
