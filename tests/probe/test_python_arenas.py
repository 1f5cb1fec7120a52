"""Bytes of Python's arenas in other processes than those of tests/pythons, which compares them with the interpreter's own
table."""

import subprocess

import pytest

import harness
from probe import exact

ASK = """
import ctypes, sys
def asked(library):
    ask = library.gpumemprof_python_arenas
    ask.restype, ask.argtypes = ctypes.c_int64, [ctypes.POINTER(ctypes.c_char_p)]
    why = ctypes.c_char_p()
    return [ask(ctypes.byref(why)), why.value.decode()]
"""
REPLACED = ASK + """
class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "alloc", "free")]
ours, other = Allocator(), Allocator()
python = ctypes.pythonapi
get, put = python.PyObject_GetArenaAllocator, python.PyObject_SetArenaAllocator
get(ctypes.byref(ours)), get(ctypes.byref(other))
other.alloc, other.context = ctypes.cast(ctypes.CDLL(None).calloc, ctypes.c_void_p).value, 1
known = asked(ctypes.CDLL(None))[0]
put(ctypes.byref(other))
unknown = asked(ctypes.CDLL(None))
put(ctypes.byref(ours))
print([known > 1 << 20, *unknown])
"""
LATE = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!python) return puts(dlerror()), 1;
  ((void (*)(int))dlsym(python, "Py_InitializeEx"))(0);
  int64_t (*ask)(const char **) = dlsym(RTLD_DEFAULT, "gpumemprof_python_arenas");
  const char *why = 0;
  const long long answer = ask(&why);
  printf("%lld %s\n", answer, why);
  return 0;
}
"""
NOT_FROM_THE_START = "Python's arenas were not counted from the program's start"


def test_an_allocator_of_the_programs_own_is_told(record):
    done = record([harness.PYTHON, "-c", REPLACED]).ok()
    assert done.stdout.decode().strip() == str([True, -1, "the program replaced what allocates Python's arenas"])


def test_arenas_from_before_the_probe_are_unknown():
    code = ASK + "print(asked(ctypes.CDLL(sys.argv[1])))"
    done = subprocess.run([harness.PYTHON, "-c", code, exact.library()], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([-1, NOT_FROM_THE_START])


def test_a_python_that_a_program_opens_later_is_unknown_and_runs(record, tmp_path):
    library = next((path for path in map(shared_library, harness.pythons().values()) if path), None)
    if not library:
        pytest.skip("no Python here has a shared library")
    (tmp_path / "late.c").write_text(LATE)
    harness.execute(["gcc", "-w", tmp_path / "late.c", "-o", tmp_path / "late", "-ldl"]).ok()
    done = record([tmp_path / "late", library]).ok()
    assert done.stdout.decode().strip() == f"-1 {NOT_FROM_THE_START}"


def shared_library(python):
    code = "import sysconfig; print(sysconfig.get_config_var('LIBDIR') + '/' + sysconfig.get_config_var('INSTSONAME'))"
    path = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return path if ".so" in path else None


def test_a_child_by_fork_begins_with_what_it_has(record):
    code = ASK + """
import os
before = asked(ctypes.CDLL(None))
pid = os.fork()
if pid == 0:
    os._exit(asked(ctypes.CDLL(None)) != before)
print(os.waitpid(pid, 0)[1], before[1])
"""
    assert record([harness.PYTHON, "-c", code]).ok().stdout.decode().split() == ["0"]
