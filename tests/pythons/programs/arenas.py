"""Says what the recorder counts of Python's arenas, and what the interpreter's own table of its pools says, with few, many
and again fewer objects."""

import ctypes
import gc
import json
import os
import re
import sys
import tempfile

import torch

one = torch.ones(1)  # so that there is a recording
ask = ctypes.CDLL(None).gpumemprof_python_arenas
ask.restype, ask.argtypes = ctypes.c_int64, [ctypes.POINTER(ctypes.c_char_p)]


def counted():
    why = ctypes.c_char_p()
    return ask(ctypes.byref(why)), why.value.decode()


def table():
    """What sys._debugmallocstats() prints, which it does past Python's own files."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(kept, 2)
        os.close(kept)
        file.seek(0)
        return file.read().decode()


def printed_bytes():
    found = re.search(r"(\d+) arenas \* (\d+) bytes/arena", table())
    return int(found[1]) * int(found[2]) if found else None


def look():
    gc.collect()
    while True:  # the table's own text may take an arena
        before, said, after = counted(), printed_bytes(), counted()
        if before == after:
            return [*before, said]


looks = [look()]
held = [[i] for i in range(300_000)]
looks.append(look())
del held
looks.append(look())
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    held = [[i] for i in range(300_000)]
    os.write(write, json.dumps(look()).encode())
    os._exit(0)
os.waitpid(pid, 0)
print(json.dumps({"looks": looks, "child": json.loads(os.read(read, 1000))}))
