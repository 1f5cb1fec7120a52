"""Signals reach the program once, and nothing of ours outlives it."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from launching import COUNT_SIGNALS, meta_of


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT"])
def test_a_signal_for_run_alone_goes_on_to_the_program(start, name):
    process = start(COUNT_SIGNALS, options=["-q"])
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert (out.decode().strip(), err, process.returncode) == (name, b"", 0)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT"])
def test_a_signal_for_the_group_arrives_once(start, name):
    process = start(COUNT_SIGNALS, options=["-q"], start_new_session=True)
    os.killpg(process.pid, getattr(signal, name))
    out, _ = process.communicate(timeout=60)
    assert out.decode().strip() == name


def test_a_second_group_signal_is_recognised_too(start):
    source = COUNT_SIGNALS.replace("while not got and", "while len(got) < 2 and")
    process = start(source, options=["-q"], start_new_session=True)
    os.killpg(process.pid, signal.SIGUSR1)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGUSR2)
    out, _ = process.communicate(timeout=60)
    assert out.decode().split() == ["SIGUSR1", "SIGUSR2"]


def test_a_graceful_end_keeps_its_exit_code(start, tmp_path):
    process = start("""
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        print("ready", flush=True)
        time.sleep(60)
    """)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 5
    assert meta_of(tmp_path)["exit"] == {"code": 5}


def test_the_program_goes_on_when_run_is_killed(start, tmp_path):
    mark = tmp_path / "went_on"
    process = start(f"""
        import time
        print("ready", flush=True)
        time.sleep(1)
        open({str(mark)!r}, "w").close()
    """)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert mark.exists()


def group_members(group):
    """Processes of a process group that are more than zombies."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            members.append(stat.parent.name)
    return members


def test_nothing_of_ours_outlives_a_killed_run(start):
    process = start("import time; print('ready', flush=True); time.sleep(1)", start_new_session=True)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while group_members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert group_members(process.pid) == []
