"""`run` stands between the shell and the program: signals and the terminal reach the program as if it were not there."""
import os
import pty
import signal
import subprocess
import time

import pytest

import harness

# os.write: a print() that a handler's print() comes into raises RuntimeError, and the signal comes as soon as it can.
WAITS = """
import os, signal, sys, time
def handler(number, frame):
    os.write(1, f"got {signal.Signals(number).name}\\n".encode())
    os._exit(42)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, handler)
os.write(1, b"ready\\n")
for _ in range(300):  # a signal that comes just before a sleep does not end it
    time.sleep(0.1)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGQUIT"])
def test_a_signal_to_run_reaches_the_program(tmp_path, name):
    run = subprocess.Popen(harness.run_argv(tmp_path / "recording", [harness.PYTHON, "-c", WAITS]), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True)
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(getattr(signal, name))
    stdout, _ = run.communicate(timeout=20)
    assert stdout == f"got {name}\n".encode()
    assert run.returncode == 42


def test_a_signal_that_the_program_does_not_handle_ends_it_as_without_us(tmp_path):
    run = subprocess.Popen(harness.run_argv(tmp_path / "recording", ["sh", "-c", "echo ready; exec sleep 30"]), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True)
    assert run.stdout.readline() == b"ready\n"
    run.terminate()
    run.communicate(timeout=20)
    assert run.returncode in (143, -15)


def test_the_terminal_is_the_programs(tmp_path):
    """A key that interrupts goes to the program once; the program sees a terminal and is in its foreground."""
    code = ("import os, signal, sys, time; print(os.isatty(0), os.isatty(1), os.tcgetpgrp(0) == os.getpgrp(), flush=True)\n"
            "count = []\nsignal.signal(signal.SIGINT, lambda *_: count.append(1))\nprint(input(), flush=True)\n"
            "end = time.monotonic() + 0.5\nwhile time.monotonic() < end: time.sleep(0.05)\nprint('interrupts', len(count), flush=True)")
    argv = harness.run_argv(tmp_path / "recording", [harness.PYTHON, "-c", code])
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(argv[0], argv)
    shown = b""

    def read_until(text):
        nonlocal shown
        while text not in shown:
            shown += os.read(terminal, 4096)

    read_until(b"True True True\r\n")  # the whole line: the echo of what is typed earlier would fall into it
    os.write(terminal, b"typed\n")
    read_until(b"typed\r\ntyped")
    os.write(terminal, b"\x03")
    read_until(b"interrupts")
    time.sleep(0.1)
    try:
        while True:
            shown += os.read(terminal, 4096)
    except OSError:
        pass  # the other end is closed
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"interrupts 1" in shown, shown
