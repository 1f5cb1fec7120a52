"""Line tables of the whole standard library: the probe's decoder against code.co_positions()."""
import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    library = tmp_path_factory.mktemp("lines") / "liblines.so"
    subprocess.run(["g++", "-std=c++23", "-O2", "-fPIC", "-shared", f"-I{ROOT / 'src'}",
                    str(HERE / "line_table.cc"), str(ROOT / "src/probe/python_code.cc"), "-o", str(library)],
                   check=True)
    function = ctypes.CDLL(str(library)).line_of_unit
    function.argtypes = [ctypes.c_char_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long]
    function.restype = ctypes.c_uint
    return function


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from code_objects(constant)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PEP 626 location tables begin with 3.11")
def test_every_instruction_of_the_standard_library_has_the_line_that_the_interpreter_gives_it(decoder):
    checked = 0
    for path in sorted(pathlib.Path(os.__file__).parent.glob("*.py")):
        for code in code_objects(compile(path.read_bytes(), str(path), "exec")):
            table, first = code.co_linetable, code.co_firstlineno
            for unit, (line, *_rest) in enumerate(code.co_positions()):
                assert decoder(table, len(table), first, unit) == (line or 0), (path, code.co_name, unit)
                checked += 1
    assert checked > 100_000


def test_a_table_cut_at_any_byte_is_read_without_going_past_its_end(decoder):
    code = compile("def f(a):\n" + "".join(f"    a = [x + {i} for x in a]\n" for i in range(50)), "x", "exec")
    table = code.co_consts[0].co_linetable
    for size in range(len(table)):
        # A copy of exactly that size at the end of an allocation; a read past it is what a sanitizer build reports.
        assert decoder(bytes(table[:size]), size, 1, 10_000) == 0
