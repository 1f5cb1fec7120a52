"""Programs that fork from threads, sandbox themselves, close what they find, and reuse code memory."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
GPUMEMPROF = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv/bin/gpumemprof"))

FILTER = '''
import ctypes, struct

def forbid(*numbers):
    """A seccomp filter that kills the process at these system calls."""
    lines = [(0x20, 0, 0, 0)]
    for number in numbers:
        lines += [(0x15, 0, 1, number), (0x06, 0, 0, 0x80000000)]
    lines.append((0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0
'''

FORK_IN_A_THREAD = '''
import os, sys, threading, torch

def allocate(count, size):
    for _ in range(count):
        torch.empty(size, dtype=torch.uint8)

def fork():
    allocate(1, 500)
    if os.fork() == 0:
        other = threading.Thread(target=allocate, args=(3000, 1001))  # the child's first event is not this thread's
        other.start()
        other.join()
        allocate(10, 1002)
        os._exit(0)
    print(os.wait()[1])

allocate(1, 100)
if sys.argv[1] == "main":
    fork()
else:
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
'''

GET_TID, FALLOCATE = 186, 285

FIRST_EVENT_IN_A_SANDBOX = FILTER + f'''
import threading, torch
first = threading.Thread(target=lambda: torch.empty(1000))
first.start()
first.join()
forbid({GET_TID})
torch.empty(1000)
print("alive")
'''

SANDBOX_FROM_BEFORE = FILTER + f'''
import os, sys
forbid({FALLOCATE})
os.execv(sys.executable, [sys.executable, "-c", "import torch; torch.empty(1000); print('alive')"])
'''

ASKS_ABOUT_SECCOMP = '''
import ctypes, torch
answer = ctypes.CDLL(None).syscall(317, 2, 0, ctypes.byref(ctypes.c_uint(0x7FFF0000)))  # is RET_ALLOW available?
kept = [torch.empty(100, dtype=torch.uint8) for _ in range(20000)]
print(answer)
'''

CLOSES_EVERYTHING = '''
import os, torch
torch.empty(1000)
os.closerange(3, 100)
read_end, write_end = os.pipe()
os.set_blocking(read_end, False)
os.write(write_end, b"HELLO")
torch.sort(torch.randn(500))
torch.nn.functional.relu(torch.randn(50) @ torch.randn(50, 50)).sum()
print(os.read(read_end, 100))
'''

# Functions of different lengths: a new one may begin elsewhere and still cover an instruction of a dead one.
GENERATED_FUNCTIONS = '''
import random, torch
random.seed(1)
for i in range(4000):
    filler = [" a=1;a=2;a=3;a=4\\n" * random.randrange(n) for n in (40, 60)]
    source = ("\\n" * i + "def f():\\n" + filler[0] + f" x=torch.empty({100000 + i},dtype=torch.uint8)\\n" + filler[1]
              + " return x\\n")
    print(100000 + i, f"gen_{i}.py:{source[:source.index('x=torch')].count(chr(10)) + 1}")
    names = {"torch": torch}
    exec(compile(source, f"gen_{i}.py", "exec"), names)
    names.pop("f")()
'''


def record(tmp_path, code, *arguments, options=()):
    command = [sys.executable, "-c", code, *arguments]
    plain = subprocess.run(command, capture_output=True, text=True)
    folder = tmp_path / "recording"
    recorded = subprocess.run([GPUMEMPROF, "run", *options, "-o", str(folder), "--", *command],
                              capture_output=True, text=True)
    assert (recorded.returncode, recorded.stdout) == (plain.returncode, plain.stdout), recorded.stderr
    exported = subprocess.run([GPUMEMPROF, "export", str(folder), "--to", "jsonl"],
                              capture_output=True, text=True).stdout
    return recorded, [json.loads(line) for line in exported.splitlines()]


def sizes(events, size):
    return sum(e["action"] == "alloc" and e["size_bytes"] == size for e in events)


@pytest.mark.parametrize("forker", ["main", "thread"])
def test_a_child_whose_first_event_is_another_threads_records_all_its_threads(tmp_path, forker):
    recorded, events = record(tmp_path, FORK_IN_A_THREAD, forker)
    assert recorded.stdout == "0\n"
    assert (sizes(events, 1001), sizes(events, 1002), sizes(events, 500)) == (3000, 10, 1)
    assert "Nothing was lost" in recorded.stderr


def test_a_thread_that_begins_inside_a_sandbox_is_counted_and_left_alone(tmp_path):
    recorded, _ = record(tmp_path, FIRST_EVENT_IN_A_SANDBOX)
    assert recorded.stdout == "alive\n"
    assert "2 events" in recorded.stderr and "seccomp" in recorded.stderr


def test_a_sandbox_from_before_the_start_is_respected(tmp_path):
    recorded, events = record(tmp_path, SANDBOX_FROM_BEFORE)
    assert recorded.stdout == "alive\n"
    assert sizes(events, 4000) == 1


def test_asking_about_seccomp_ends_nothing(tmp_path):
    _, events = record(tmp_path, ASKS_ABOUT_SECCOMP)
    assert sizes(events, 100) == 20000


def test_native_stacks_touch_no_descriptor_that_the_program_opens_under_libunwinds_numbers(tmp_path):
    recorded, _ = record(tmp_path, CLOSES_EVERYTHING, options=["--stacks", "native"])
    assert recorded.stdout == "b'HELLO'\n"
    assert "no stack" in recorded.stderr


def test_generated_functions_of_different_lengths_have_their_own_lines(tmp_path):
    recorded, events = record(tmp_path, GENERATED_FUNCTIONS)
    lines = {e["size_bytes"]: e["stack"][0].split()[0] for e in events if e["action"] == "alloc"}
    wanted = dict(line.split() for line in recorded.stdout.splitlines())
    assert {size: lines[int(size)] for size in wanted} == wanted
