"""gpumemprof_attach() in processes that were not started with the library."""
import json
import os

import pytest

import harness
import nested
from probe import exact

BEGIN = f'''import sys
sys.path.insert(0, {str(harness.ROOT / "tests")!r})
''' + '''
import ctypes, json, os, re, sys, threading
from probe import exact

def open_library(mode=ctypes.DEFAULT_MODE):
    ctypes.CDLL(exact.library(), mode=mode)
    return exact.Api(exact.library())

def maps():
    """Address range and protection of every mapping of a file."""
    with open("/proc/self/maps") as file:
        lines = [line.split() for line in file]
    return [(f[0], f[1], f[5]) for f in lines if len(f) > 5 and ".so" in f[5] and "gpumemprof" not in f[5]]

def say(**facts):
    print(json.dumps(facts))
'''


def run(code, *arguments, env=(), rc=0):
    """What the program said. Nothing may come on stderr."""
    is_torch_first = code.startswith("\nimport torch\n") and not env
    execute = nested.execute if is_torch_first else harness.execute
    done = execute([harness.PYTHON, "-c", BEGIN + code, *arguments], env={**os.environ, **dict(env)}, timeout=120)
    assert (done.rc, done.stderr) == (rc, b""), done
    return json.loads(done.stdout.splitlines()[-1])


def test_blocks_older_than_attaching_are_counted_apart_when_they_are_freed():
    said = run('''
import torch
old = [torch.empty(1000, dtype=torch.uint8) for _ in range(5)]
api = open_library()
assert api.attach() == ""
first = api.read()
del old
new = torch.empty(10, dtype=torch.uint8)
say(first=first, last=api.read())
''')
    assert set(said["first"].values()) == {0}  # the block of the test that attaching makes is not counted
    assert said["last"] == dict.fromkeys(said["last"], 0) | {
        "live_bytes": 10, "alloc_count": 1, "alloc_bytes": 10, "unknown_free_count": 5}


def test_attaching_again_to_a_recording_adds_no_event_to_it(tmp_path):
    run(f'''
import torch
api = open_library()
folder = {str(tmp_path)!r}
assert api.attach(folder) == ""
kept = [torch.empty(1000, dtype=torch.uint8)]
assert api.attach(folder) == "" and api.attach(folder) == ""
kept.append(torch.empty(2000, dtype=torch.uint8))
say()
''')
    assert [event["size_bytes"] for event in harness.allocs(harness.events(tmp_path))] == [1000, 2000]


def test_every_table_has_its_protection_back_and_attaching_again_changes_nothing():
    said = run('''
import torch
api = open_library()
before = maps()
assert api.attach() == "" and api.attach() == ""
other = threading.Thread(target=lambda: torch.empty(100))
other.start()
other.join()
say(same=maps() == before, count=len(before), counters=api.read())
''')
    assert said["same"] and said["count"] > 20
    assert said["counters"]["alloc_count"] == 1


@pytest.mark.parametrize("mode", ["DEFAULT_MODE", "RTLD_GLOBAL"])
def test_attached_before_torch_is_loaded_it_counts_from_the_first_tensor(mode):
    said = run(f'''
api = open_library(ctypes.{mode})
errors = [api.attach()]
import torch
before = api.read()
x = torch.empty(1000, dtype=torch.uint8)
errors.append(api.attach())
say(errors=errors, live=api.read()["live_bytes"] - before["live_bytes"])
''')
    assert said == {"errors": ["", ""], "live": 1000}


@pytest.fixture(scope="module")
def with_relro(tmp_path_factory):
    """A library that calls libc10 through tables which are read-only once it is loaded."""
    out = tmp_path_factory.mktemp("relro") / "libstrict.so"
    harness.execute(["gcc", "-O1", "-w", "-shared", "-fPIC", harness.PROGRAMS / "allocate.c", "-o", out, "-Wl,-z,relro,-z,now",
                     f"-L{harness.TORCH_LIB}", "-l:libc10.so", f"-Wl,-rpath,{harness.TORCH_LIB}",
                     "-Wl,--allow-shlib-undefined"]).ok()
    return out


@pytest.mark.parametrize("order", ["before", "after"])
def test_libraries_that_call_the_allocator_themselves_count_whenever_they_are_loaded(with_relro, order):
    said = run('''
import torch
api = open_library()
def load():
    library = ctypes.CDLL(sys.argv[1])
    library.allocate.restype, library.allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.release.argtypes = [ctypes.c_void_p]
    return library
library = load() if sys.argv[2] == "before" else None
before = maps() if library else None
assert api.attach() == ""
same = not library or maps() == before
library = library or load()
blocks = [library.allocate(size) for size in range(1, 11)]
for block in blocks[:4]:
    library.release(block)
say(counters=api.read(), same=same)
''', with_relro, order)
    assert said["same"]
    assert said["counters"] == dict.fromkeys(said["counters"], 0) | {
        "live_bytes": 45, "alloc_count": 10, "free_count": 4, "alloc_bytes": 55, "free_bytes": 10}


def test_with_a_folder_it_records_as_run_does(tmp_path):
    folder = tmp_path / "made" / "recording"
    folder.parent.mkdir()
    said = run('''
import torch
torch.empty(7)
api = open_library()
assert api.attach(sys.argv[1]) == ""
def here():
    return torch.empty(123_456, dtype=torch.uint8)
kept = here()
torch.empty(1000, dtype=torch.uint8)
say(events=api.lib.gpumemprof_event_count(), counters=api.read())
''', folder)
    events = harness.events(folder)
    assert {123_456, 1000} <= set(harness.by_size(events)) and 28 not in harness.by_size(events)  # 28: before it
    kept = [e for e in harness.allocs(events) if e["size_bytes"] == 123_456]
    assert len(kept) == 1 and [frame.function for frame in harness.frames(kept[0])][:2] == ["here", "<module>"]
    assert said["counters"]["live_bytes"] == 123_456
    assert folder.stat().st_mode & 0o777 == 0o700


def test_without_a_folder_nothing_is_written(tmp_path):
    said = run('''
import torch
os.chdir(sys.argv[1])
api = open_library()
assert api.attach() == ""
torch.empty(1000)
say(events=api.lib.gpumemprof_event_count(), files=os.listdir("."))
''', tmp_path)
    assert said == {"events": 0, "files": []}


@pytest.mark.parametrize("folder, error", [
    ("relative/folder", "the folder's name must be absolute"),
    ("/proc/no/such/folder", "the folder cannot be made"),
    ("/" + "x" * 4000, "the folder's name is too long"),
])
def test_a_folder_that_cannot_be_is_an_error_and_the_program_goes_on(folder, error):
    said = run('''
import torch
api = open_library()
say(error=api.attach(sys.argv[1]), sum=torch.ones(10).sum().item())
''', folder)
    assert said == {"error": error, "sum": 10.0}


def test_threads_that_allocate_meanwhile_go_on_and_are_counted_from_some_moment_on():
    said = run('''
import torch
api = open_library()
stop = threading.Event()
def work():
    while not stop.is_set():
        torch.empty(1000, dtype=torch.uint8)
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers:
    worker.start()
errors = [api.attach() for _ in range(5)]
with api.scope() as scope:
    kept = torch.empty(64 << 20, dtype=torch.uint8)
    del kept
stop.set()
for worker in workers:
    worker.join()
say(errors=errors, scope=scope, last=api.read())
''')
    assert said["errors"] == [""] * 5
    assert said["scope"]["own_peak_bytes"] == 64 << 20
    assert 0 <= said["scope"]["peak_live_bytes"] - (64 << 20) <= 4 * 1000 + said["scope"]["start_live_bytes"]
    last = said["last"]
    assert last["live_bytes"] == 0 and last["alloc_count"] == last["free_count"] and last["untracked_count"] == 0


def test_a_program_that_has_an_exception_in_hand_keeps_it():
    said = run('''
import torch
library = ctypes.PyDLL(exact.library())  # called with the GIL held
try:
    {}["missing"]
except KeyError:
    done = library.gpumemprof_attach(None, 0)
    kind = sys.exc_info()[0].__name__
say(done=done, kind=kind)
''')
    assert said == {"done": 1, "kind": "KeyError"}


def test_under_run_attaching_does_nothing_and_says_yes():
    said = run('''
import torch
api = exact.Api()
before = maps()
error = api.attach()
say(error=error, same=maps() == before, counters=api.read(), counting=api.counting_begin())
''', env={"LD_PRELOAD": exact.library()})
    assert said == {"error": "", "same": True, "counters": None, "counting": 1}


@pytest.fixture(scope="module")
def sealed_c10(tmp_path_factory):
    """A libc10 whose own calls are bound inside it, and a program that opens it."""
    folder, here = tmp_path_factory.mktemp("sealed"), os.path.dirname(__file__)
    harness.execute(["g++", "-O1", "-fPIC", "-shared", "-Wl,-Bsymbolic", f"{here}/fake_c10.cc", "-o", folder / "libc10.so"]).ok()
    return folder / "libc10.so"


def test_a_libc10_whose_calls_cannot_be_seen_is_an_error(sealed_c10):
    said = run('''
ctypes.CDLL(sys.argv[1])
api = open_library()
say(error=api.attach(), counting=api.counting_begin())
''', sealed_c10)
    assert "libc10 linked with -Bsymbolic" in said["error"]
    assert said["counting"] == 0


def test_what_the_program_frees_and_makes_while_attaching_looks_is_its_own():
    said = run('''
import torch
held = [torch.empty(100, dtype=torch.uint8) for _ in range(3)]
kept, real = [], torch.UntypedStorage
def storage(size):
    held.clear()
    kept.append(torch.empty(1000, dtype=torch.uint8))
    return real(size)
torch.UntypedStorage = storage
api = open_library()
say(error=api.attach(), counters=api.read())
''')
    assert said["error"] == ""
    assert said["counters"] == dict.fromkeys(said["counters"], 0) | {
        "live_bytes": 1000, "alloc_count": 1, "alloc_bytes": 1000, "unknown_free_count": 3}


def test_with_the_folder_of_run_attaching_before_the_first_event_says_yes(tmp_path):
    said = run('''
import torch
api = exact.Api()
error = api.attach(sys.argv[1])
kept = torch.empty(1000, dtype=torch.uint8)
say(error=error, events=api.lib.gpumemprof_event_count() > 0)
''', tmp_path, env={"LD_PRELOAD": exact.library(), "GPUMEMPROF_DIR": str(tmp_path)})
    assert said == {"error": "", "events": True}


def test_a_forked_child_of_a_process_that_records_can_attach_too(tmp_path):
    said = run('''
import torch
api = open_library()
assert api.attach(sys.argv[1]) == ""
child = os.fork()
if child == 0:
    os._exit(0 if api.attach(sys.argv[1]) == "" else 1)
say(status=os.waitpid(child, 0)[1])
''', tmp_path / "recording")
    assert said == {"status": 0}


SANDBOX = r'''
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <stdint.h>
// Death for whoever writes to a file at a place, which is what recording does, or asks for memory
// that a fork empties (MADV_WIPEONFORK: 18), which is what counting does.
int forbid(void) {
  struct sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 18, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof(lines) / sizeof(lines[0]), lines};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
'''


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="seccomp is watched on x86-64")
def test_a_program_that_then_forbids_itself_what_recording_needs_lives_and_is_still_counted(tmp_path):
    (tmp_path / "sandbox.c").write_text(SANDBOX)
    harness.execute(["gcc", "-shared", "-fPIC", tmp_path / "sandbox.c", "-o", tmp_path / "sandbox.so"]).ok()
    said = run('''
import torch
sandbox = ctypes.CDLL(sys.argv[2])
api = open_library()
assert api.attach(sys.argv[1]) == ""
kept = torch.empty(500, dtype=torch.uint8)
assert sandbox.forbid() == 0
before = api.lib.gpumemprof_event_count()
for _ in range(5000):
    torch.empty(100)
say(live=api.read()["live_bytes"], recorded=before)
''', tmp_path / "recording", tmp_path / "sandbox.so")
    assert said["live"] == 500
    assert said["recorded"] >= 1


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="seccomp is watched on x86-64")
def test_a_program_that_restricts_itself_lives_where_only_counting_is_attached(tmp_path):
    (tmp_path / "sandbox.c").write_text(SANDBOX)
    harness.execute(["gcc", "-shared", "-fPIC", tmp_path / "sandbox.c", "-o", tmp_path / "sandbox.so"]).ok()
    said = run('''
import torch
sandbox = ctypes.CDLL(sys.argv[1])
api = open_library()
assert api.attach() == ""
assert sandbox.forbid() == 0
begin = api.lib.gpumemprof_scope_begin
begin.restype, begin.argtypes = ctypes.c_uint64, [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
scopes = [begin(0, -1, None) for _ in range(2000)]  # more records than are mapped
say(last=scopes[-1], errors=[api.attach(), api.attach("/tmp/never-made")])
''', tmp_path / "sandbox.so")
    assert said == {"last": 0, "errors": ["", "the program has restricted its own system calls"]}
