"""Checks the probe's reading of line tables against the interpreter's own, for whatever Python runs this file:

    python3 check_line_tables.py PATH/liblines.so
"""

import bisect
import ctypes
import dis
import os
import pathlib
import sys

LOCATIONS, LINES, NUMBERS = range(3)  # LineTable


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from code_objects(constant)


def lines_of(code):
    """(instruction, line) as the interpreter says it: 3.11 on every instruction counts two bytes."""
    if sys.version_info >= (3, 11):
        yield from ((2 * unit, line or 0) for unit, (line, *_rest) in enumerate(code.co_positions()))
    elif sys.version_info >= (3, 10):
        for begin, end, line in code.co_lines():
            yield from ((at, line or 0) for at in range(begin, end, 2))
    else:
        starts = [*dis.findlinestarts(code)]
        begins = [begin for begin, _line in starts]
        for at in range(begins[0], len(code.co_code), 2):
            yield at, starts[bisect.bisect_right(begins, at) - 1][1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    library = ctypes.CDLL(sys.argv[1])
    library.line_of_unit.argtypes = [ctypes.c_char_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long]
    library.line_of_byte.argtypes = [ctypes.c_uint, *library.line_of_unit.argtypes]
    kind = LOCATIONS if sys.version_info >= (3, 11) else LINES if sys.version_info >= (3, 10) else NUMBERS

    def decoded(table, first, at):
        if kind == LOCATIONS:
            return library.line_of_unit(table, len(table), first, at // 2)
        return library.line_of_byte(kind, table, len(table), first, at)

    checked = failed = 0
    for path in sorted(pathlib.Path(os.__file__).parent.glob("*.py")):
        for code in code_objects(compile(path.read_bytes(), str(path), "exec")):
            table = code.co_lnotab if kind == NUMBERS else code.co_linetable
            for at, line in lines_of(code):
                checked += 1
                if decoded(table, code.co_firstlineno, at) != line:
                    failed += 1
                    print(f"FAILED  {path}: {code.co_name}, byte {at}: line {line}")
    # A copy of exactly that size at the end of an allocation; a read past it is what a sanitizer build reports.
    long = compile("def f(a):\n" + "".join(f"    a = [x + {i} for x in a]\n" for i in range(50)), "x", "exec").co_consts[0]
    table = long.co_lnotab if kind == NUMBERS else long.co_linetable
    for size in range(len(table)):
        line = decoded(bytes(table[:size]), 1, 100_000)
        failed += line > 60 if kind == NUMBERS else line != 0
    print(f"Python {sys.version.split()[0]}: {checked} instructions")
    print(f"{checked - failed} passed, {failed} failed")
    sys.exit(failed > 0 or checked < 100_000)


if __name__ == "__main__":
    main()
