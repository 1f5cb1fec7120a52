"""A recording where the system's pages are larger than 4 KiB, as on some kernels of arm64: page_sizes.py PATH/gpumemprof

qemu tells a program any size of pages, but takes mappings as its own kernel does. So its log of system calls is read:
each that a kernel with such pages would refuse is a fault. Run this where the system is emulated.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "programs" / "sizes.py"
CALL = re.compile(r"^\d+ (mmap|munmap|mprotect|madvise)\((.*?)\) ?(= .*)?$")


def number(text):
    return 0 if text == "NULL" else int(text, 0)


def refused(line, page):
    """Whether a kernel with such pages would refuse this call."""
    match = CALL.match(line.strip())
    if not match:
        return False
    name, arguments = match[1], match[2].split(",")
    if name == "mmap":
        is_of_a_file = "MAP_ANONYMOUS" not in arguments[3]
        return number(arguments[5]) % page != 0 if is_of_a_file else False
    return number(arguments[0]) % page != 0


def check(command, page, folder):
    emulator = {"QEMU_PAGESIZE": str(page), "QEMU_STRACE": "1", "QEMU_LOG_FILENAME": str(folder / "calls.%d")}
    run = [command, "run", "-o", folder / "recording", "--", sys.executable, PROGRAM]
    done = subprocess.run(run, env={**os.environ, **emulator}, capture_output=True, check=False)
    assert done.returncode == 0, done
    lines = [line for log in folder.glob("calls.*") for line in log.read_text(errors="replace").splitlines()]
    mappings = [line for line in lines if CALL.match(line.strip())]
    assert any("mmap(" in line for line in mappings), f"no call was logged: {lines[:3]}"
    wrong = [line for line in mappings if refused(line, page)]
    assert not wrong, wrong[:5]
    analysis = subprocess.run([command, "analyze", folder / "recording", "--format", "json"], capture_output=True, check=True)
    device = next(one for one in json.loads(analysis.stdout)["devices"] if one["device"] == "cpu")
    held = sum(json.loads(done.stdout)["held_at_peak"])
    holders = sum(one["bytes"] for one in device["holders_at_peak"] if PROGRAM.name in str(one["stack"]))
    assert holders == held, (holders, held)
    print(f"pages of {page // 1024} KiB: {len(mappings)} calls about mappings, none that is refused; {held} bytes held, as the program says")


for size in (16384, 65536):
    with tempfile.TemporaryDirectory() as scratch:
        check(sys.argv[1], size, Path(scratch))
