"""Programs that tell the recorder of themselves through the C API: marks_programs.py NAME."""
import ctypes
import json
import os
import sys
import threading

import torch
from torch import nn

probe = ctypes.CDLL(None)
probe.gpumemprof_phase_begin.restype = ctypes.c_uint64
probe.gpumemprof_phase_begin.argtypes = [ctypes.c_char_p]
probe.gpumemprof_phase_end.argtypes = [ctypes.c_uint64]
probe.gpumemprof_mark_storage.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]
probe.gpumemprof_mark_module.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
probe.gpumemprof_when_module_is_new.argtypes = [CALL, ctypes.c_void_p]
begin, end = probe.gpumemprof_phase_begin, probe.gpumemprof_phase_end


def on_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def phases():
    """Bytes of a tensor say which phase is to be found in its stack: see the test."""
    torch.empty(1000, dtype=torch.uint8)
    outer = begin(b"training")
    torch.empty(1001, dtype=torch.uint8)
    inner = begin("prüfen".encode())
    torch.empty(1002, dtype=torch.uint8)
    on_thread(lambda: torch.empty(1003, dtype=torch.uint8))  # a thread has phases of its own
    end(outer)  # not the innermost
    torch.empty(1004, dtype=torch.uint8)
    on_thread(lambda: end(inner))
    torch.empty(1005, dtype=torch.uint8)
    end(inner)  # once more: nothing
    end(0)
    end(12345678)
    again = begin(b"training")
    torch.empty(1006, dtype=torch.uint8)
    probe.gpumemprof_stop()
    unrecorded = begin(b"not recorded")
    probe.gpumemprof_start()
    end(again)
    return [outer, inner, again, unrecorded]


def deep():
    """More phases than the stacks can name, then all of them end."""
    numbers = [begin(b"p%d" % i) for i in range(20)]
    torch.empty(1001, dtype=torch.uint8)
    for number in reversed(numbers[3:]):
        end(number)
    torch.empty(1002, dtype=torch.uint8)
    for number in reversed(numbers[:3]):
        end(number)
    torch.empty(1003, dtype=torch.uint8)
    return len(set(numbers))


def forked():
    """A child's phases, steps and numbers are its own."""
    probe.gpumemprof_step_end()
    phase = begin(b"of the parent")
    torch.empty(1001, dtype=torch.uint8)
    child = os.fork()
    if child == 0:
        torch.empty(1002, dtype=torch.uint8)
        end(phase)
        probe.gpumemprof_step_end()
        torch.empty(1003, dtype=torch.uint8)
        os._exit(0)
    os.waitpid(child, 0)
    torch.empty(1004, dtype=torch.uint8)
    end(phase)
    probe.gpumemprof_step_end()
    return child


def roles():
    weight = torch.empty(64, dtype=torch.uint8)
    module = nn.ReLU()
    probe.gpumemprof_mark_storage(weight.data_ptr(), 1, b"encoder.weight")
    probe.gpumemprof_mark_storage(weight.data_ptr(), 4, None)
    for role in (0, 5, -1):
        probe.gpumemprof_mark_storage(weight.data_ptr(), role, b"no role")
    probe.gpumemprof_mark_storage(None, 1, b"nowhere")
    probe.gpumemprof_mark_module(id(module), b"encoder.act")
    probe.gpumemprof_mark_module(id(module), b"x" * 999 + "ü".encode() * 9)
    for _ in range(3):
        probe.gpumemprof_step_end()
    return [weight.data_ptr(), id(module)]


def new_modules():
    """How often the call was made, when it was asked for and when not."""
    calls = []

    def call(_):
        calls.append(threading.current_thread() is threading.main_thread())
        return 0

    kept = CALL(call)
    x = torch.ones(8, 8)
    first, second, third = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
    counts = []

    def count():
        for _ in range(1000):  # instructions of Python, between which the call is made
            pass
        counts.append(len(calls))

    first(x), count()  # 0: not requested
    probe.gpumemprof_when_module_is_new(kept, None)
    second(x), count()  # 1
    third(x), count()  # 1: not requested again
    probe.gpumemprof_mark_module(id(first), b"first")
    probe.gpumemprof_when_module_is_new(kept, None)
    nn.Sequential(first)(x), count()  # 1: it has a name
    fourth = nn.Linear(8, 8)
    on_thread(lambda: fourth(x)), count()  # 2, and by the main thread
    probe.gpumemprof_when_module_is_new(kept, None)
    probe.gpumemprof_mark_module(id(first), b"")
    first(x), count()  # 3: its name was taken away, although its stack is known
    probe.gpumemprof_when_module_is_new(kept, None)
    probe.gpumemprof_when_module_is_new(CALL(0), None)
    nn.Linear(8, 8)(x), count()  # 3: not wanted any more
    return {"counts": counts, "main": all(calls)}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
