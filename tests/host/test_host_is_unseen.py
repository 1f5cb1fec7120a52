"""A program under `run --host` behaves as without: same output, same exit, and its own allocator stays its own."""
import os
import subprocess

import pytest

import harness
from host_programs import compiled, live, sizes

PAGE = 4096


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("hostile"), "host_hostile")


def both(tmp_path, argv, **popen):
    plain = harness.execute(argv, **popen)
    recorded = harness.record(tmp_path / "r", argv, ["--host"], **popen)
    assert (recorded.rc, recorded.stdout) == (plain.rc, plain.stdout), f"{recorded!r}\nis not\n{plain!r}"
    harness.without_summary(recorded, plain)
    return recorded


def test_a_thousand_threads(tmp_path, hostile):
    assert both(tmp_path, [hostile, "threads", "1000"], timeout=300).rc == 0
    events = harness.events(tmp_path / "r")
    made = sorted(s for s in sizes(events, "malloc") if s >= 70000 and s not in (123457,))
    assert made == sorted(n for i in range(1000) for n in (70000 + i, 2 * (70000 + i)))
    assert sizes(events, "anonymous maps") == [131072] * 1000
    assert live(events, "malloc") == live(events, "anonymous maps") == []


def test_a_signal_handler_that_maps(tmp_path, hostile):
    assert both(tmp_path, [hostile, "signals"], timeout=300).rc == 0


def test_forks_beside_a_thread_that_allocates(tmp_path, hostile):
    assert both(tmp_path, [hostile, "forks"], timeout=300).rc == 0
    events = harness.events(tmp_path / "r")
    assert sizes(events, "malloc").count(88000) == 30
    assert sizes(events, "malloc").count(66000) == 1, "a child repeats nothing of its parent's"


def test_no_descriptor_is_open_between_two_events(tmp_path, hostile):
    assert both(tmp_path, [hostile, "descriptors"]).stdout == b"0\n"


def test_a_refused_block(tmp_path, hostile):
    assert both(tmp_path, [hostile, "refused"]).stdout == b"1 1\n"
    refused = [e for e in harness.events(tmp_path / "r") if e["action"] == "oom"]
    assert [e["size_bytes"] for e in refused] == [(2**64 - 1) // 2]


def test_a_killed_program_keeps_its_blocks(tmp_path, hostile):
    assert both(tmp_path, [hostile, "killed"]).rc == 137
    assert 777777 in live(harness.events(tmp_path / "r"), "malloc")


def test_a_program_with_its_own_malloc(tmp_path):
    """What an allocator maps, perhaps with its lock held, is left to it as well."""
    program = compiled(tmp_path, "own_malloc", "-DMAIN")
    done = both(tmp_path, [program])
    assert done.stdout == b"1 1\n" and b"nothing recorded" in done.stderr


AT_EXIT = """
#include <stdlib.h>
void gpumemprof_step_end(void) __attribute__((weak));
int call(void *nothing) { return 0; }
static void work(void) {
  for (int i = 0; i < 100; ++i) {
    void *volatile block = malloc(100000);
    free(block);
    gpumemprof_step_end();
  }
}
__attribute__((constructor)) static void begin(void) { atexit(work); }
"""
ASKS = """
import ctypes, sys
library, process = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
process.gpumemprof_call_after.argtypes = [ctypes.c_uint64] + [ctypes.c_void_p] * 3
add, call = (ctypes.cast(one, ctypes.c_void_p) for one in (ctypes.pythonapi.Py_AddPendingCall, library.call))
process.gpumemprof_call_after(100, add, call, None)
"""


def test_blocks_of_exit_handlers_ask_no_interpreter_that_has_ended(tmp_path):
    (tmp_path / "late.c").write_text(AT_EXIT)
    subprocess.run(["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", tmp_path / "late.c", "-o", tmp_path / "late.so"], check=True)
    done = harness.record(tmp_path / "r", [harness.PYTHON, "-c", ASKS, tmp_path / "late.so"], ["--host"])
    assert done.rc == 0, done
    assert sizes(harness.events(tmp_path / "r"), "malloc").count(100000) == 100


def allocator_library(tmp_path, *options):
    library = tmp_path / "libown.so"
    subprocess.run(["cc", "-O1", "-fno-builtin", "-w", "-shared", "-fPIC", *options, harness.PROGRAMS / "own_malloc.c", "-o", library], check=True)
    return library


def test_a_preloaded_allocator_stays_first(tmp_path):
    library = allocator_library(tmp_path)
    program = compiled(tmp_path, "own_malloc", "-DMAIN", "-DWITHOUT_ALLOCATOR", library)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    assert both(tmp_path, [program], env=environment).stdout == b"1 1\n"
    text = " ".join(harness.execute([harness.COMMAND, "analyze", tmp_path / "r"]).ok().stdout.decode().split())
    assert "malloc comes from libown.so: its blocks are not recorded; maps (mmap) are." in text


def names(tmp_path, library, light, said):
    """Whether report and summary say this of a program whose tensors alone are recorded."""
    done = both(tmp_path, [light.program, "3"], env={**os.environ, "LD_PRELOAD": str(library)})
    text = " ".join(harness.execute([harness.COMMAND, "analyze", tmp_path / "r"]).ok().stdout.decode().split())
    assert said in text and said in done.stderr.decode(), text
    return text


def test_an_allocator_is_named_where_nothing_of_the_host_is_recorded(tmp_path, light):
    """Its blocks are not, nor its maps: so the note must come with the first tensor."""
    said = "malloc and mmap come from libown.so: blocks and maps are not recorded."
    text = names(tmp_path, allocator_library(tmp_path, "-DWITH_MMAP"), light, said)
    assert "Host blocks and maps below 64 KiB" not in text, "nothing was recorded of either"


@pytest.mark.parametrize(("name", "said"), [
    ("libjemalloc.so.2", "malloc comes from libjemalloc.so.2: its blocks are not recorded; maps (mmap) are."),
    ("libtcmalloc_minimal.so.4", "malloc and mmap come from libtcmalloc_minimal.so.4: blocks and maps are not recorded."),
])
def test_known_allocators_are_named(tmp_path, light, name, said):
    found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    paths = [line.split()[-1] for line in found.splitlines() if line.split()[0] == name and "x86-64" in line]
    if not paths:
        pytest.skip(f"no {name} here")
    names(tmp_path, paths[0], light, said)


def test_a_linked_allocator_hands_out_the_blocks_that_are_recorded(tmp_path):
    library = allocator_library(tmp_path)
    program = compiled(tmp_path, "own_malloc", "-DMAIN", "-DWITHOUT_ALLOCATOR", library)
    assert both(tmp_path, [program]).stdout == b"1 1\n"
    events = harness.events(tmp_path / "r")
    assert [s for s in sizes(events, "malloc") if s in (222222, 333333)] == [222222, 333333]
    assert 64 << 20 not in sizes(events, "anonymous maps")
    assert 444416 + PAGE - 1 & ~(PAGE - 1) in sizes(events, "anonymous maps")
    assert 222222 not in live(events, "malloc") and 333333 not in live(events, "malloc")


def test_the_library_needs_little_and_shows_malloc_and_mmap_alone():
    library = harness.ROOT / ".venv/lib/libgpumemprof_host.so"
    dynamic = harness.execute(["readelf", "-dW", library]).ok().stdout.decode()
    needed = {line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line}
    assert needed <= {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed
    shown = harness.execute(["nm", "-D", "--defined-only", library]).ok().stdout.decode().splitlines()
    assert {line.split()[-1].split("@")[0] for line in shown} == {
        "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "mmap", "mmap64", "munmap", "mremap"}


def test_where_the_library_is_missing_nothing_is_started(tmp_path):
    probe = tmp_path / "libgpumemprof_probe.so"
    probe.write_bytes((harness.ROOT / ".venv/lib/libgpumemprof_probe.so").read_bytes())
    done = harness.record(tmp_path / "r", ["/bin/echo", "started"], ["--host"], env={**os.environ, "GPUMEMPROF_PROBE": str(probe)})
    assert done.rc != 0 and b"started" not in done.stdout
    assert b"libgpumemprof_host.so is not beside the probe" in done.stderr
