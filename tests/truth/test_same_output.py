"""What a program prints, and what PyTorch's own profiler counts in it, is the same with and without a recorder."""
import pytest

import harness

PROGRAM = harness.PROGRAMS / "profiled_with_warnings.py"


def numbered(line):
    return harness.normal_text(line)


@pytest.mark.parametrize("warnings", ["always", "error"])
def test_stdout_stderr_losses_and_profiler_events_are_the_same(record, warnings):
    argv = [harness.PYTHON, "-W", warnings, PROGRAM]
    without, with_us = harness.execute(argv).ok(), record(argv).ok()
    assert with_us.stdout == without.stdout
    assert b"memory events" in without.stdout and b"0x1." in without.stdout
    # PyTorch's logger writes a date and a PID into its lines; all else must be equal.
    program_lines = without.stderr.splitlines()
    lines = with_us.stderr.splitlines()
    assert [numbered(x) for x in lines[: len(program_lines)]] == [numbered(x) for x in program_lines]
    ours = lines[len(program_lines):]
    assert 1 <= len(ours) <= 12, ours


def test_what_the_recorder_says_is_on_stderr_after_the_program(record, light):
    argv = [light.program, "10"]
    without, with_us = harness.execute(argv).ok(), record(argv).ok()
    assert with_us.stdout == without.stdout == b"10 blocks\n"
    assert harness.without_summary(with_us, without).strip()
