"""How much the largest process of a run had resident, in the summary of `run`."""

import re
import subprocess
import sys

import harness

PROGRAM = """
import time, torch

tensor = torch.ones(1 << 10)
held = bytearray(b"x") * (256 << 20)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
time.sleep(2)  # the run's processes are looked at meanwhile
"""
# Larger than the program, as a notebook or a launcher is that starts `run`.
STARTER = """
import subprocess, sys

held = bytearray(b"x") * (1 << 30)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""


def test_a_large_process_that_starts_run_does_not_hide_what_its_program_had(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    argv = [harness.COMMAND, "run", "-o", tmp_path / "r", "--", harness.PYTHON, program]
    done = subprocess.run([sys.executable, "-c", STARTER, *argv], capture_output=True, check=True, cwd=tmp_path)
    highest_kib = int(done.stdout)
    assert 256 << 10 < highest_kib < 1 << 20
    (told,) = re.findall(r"The largest process had (\S+) MiB resident at most\.", done.stderr.decode())
    # The program reads its figure before the interpreter ends, which takes little more.
    assert highest_kib / 1024 - 1 <= float(told) <= highest_kib / 1024 + 16
    # One process counts no page of its own twice.
    report = harness.execute([harness.COMMAND, "analyze", tmp_path / "r"]).ok().stdout.decode()
    assert " resident at most" in report and "counted in each of them" not in report.replace("\n  ", " ")
