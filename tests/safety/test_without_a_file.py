"""Processes that can make no file: what they lose is counted to the event and the byte, with the true reason."""
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import time

import pytest

import harness

PROGRAM = harness.PROGRAMS / "without_a_file.py"
_spec = importlib.util.spec_from_file_location("without_a_file", PROGRAM)
given = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(given)
EACH_EVENTS, EACH_BYTES = given.BLOCKS + 1, given.BLOCKS * given.BLOCK_BYTES + given.LAST_BYTES
ALL_EVENTS, ALL_BYTES = given.CHILDREN * EACH_EVENTS, given.CHILDREN * EACH_BYTES

REASONS = {
    "user": "its file could not be made: Permission denied (it runs as user 65534)",
    "root": "its file could not be made: No such file or directory (it cannot see the recording's folder: it has another root "
            "or other mounts)",
    "file_size": "its file could not be written: File too large (its file size limit is 1.00 KiB)",
    "descriptors": "its file could not be made: Too many open files (its limit of descriptors)",
}
FULL = {
    "space": ("size=1m", "its file could not be written: No space left on device"),
    "inodes": ("size=1m,nr_inodes=30", "its file could not be made: No space left on device (no inodes were left)"),
}


def argv(how, folder, allocator="light"):
    return [harness.PYTHON, PROGRAM, allocator, how, folder]


def meta(recording):
    return json.loads((recording / "meta.json").read_text())


def check(done, recording, reason, processes, events, size):
    named = meta(recording)["not_recorded"]
    assert [(n["reason"], n["processes"], n["lost_events"], n["lost_bytes"]) for n in named] == [
        (reason, processes, events, size)], named
    assert PROGRAM.name in named[0]["command"], named
    said = done.stderr.decode()
    assert reason in said and f"lost {events} events" in said and "-Bsymbolic" not in said, said


def check_analysis(done, recording, reason, events):
    analysis = harness.analysis(recording)
    assert analysis["lost"]["events"] == events
    assert reason in analysis["lost"]["reasons"][0]["reason"]
    assert [d["peak"]["exact"] for d in analysis["devices"]] == [False]
    text = harness.execute([harness.COMMAND, "analyze", recording]).stdout.decode()
    for said in (done.stderr.decode(), text):
        assert "NOT EXACT" in said and f"LOST: {events} events" in said, said


@pytest.mark.parametrize("how", REASONS)
def test_children_that_gave_up_their_rights(tmp_path, light, how):
    if os.geteuid() != 0 and how in ("user", "root"):
        pytest.skip("needs root")
    without = harness.execute(argv(how, tmp_path), env=light.env)
    done = harness.record(tmp_path / "recording", argv(how, tmp_path), env=light.env)
    assert (done.rc, done.stdout) == (without.rc, without.stdout) == (0, b"6\n" * given.CHILDREN), done
    check(done, tmp_path / "recording", REASONS[how], given.CHILDREN, ALL_EVENTS, ALL_BYTES)
    check_analysis(done, tmp_path / "recording", REASONS[how], ALL_EVENTS)


@contextlib.contextmanager
def tmpfs(where, options):
    where.mkdir()
    if harness.execute(["mount", "-t", "tmpfs", "-o", options, "none", where]).rc:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def make_room(mount):
    """So that `run` can write its meta.json at the end; what the children lost stays lost."""
    for file in mount.glob("filler*"):
        file.unlink()


@pytest.mark.parametrize("how", FULL)
@pytest.mark.parametrize("is_first", [False, True])
def test_no_room_for_a_file(tmp_path, light, how, is_first):
    options, reason = FULL[how]
    with tmpfs(tmp_path / "disk", options) as mount:
        # The shell ends last, when there is room again: meta.json is written after it.
        script = f'"$@"; rm -f {mount}/filler*'
        program = ["sh", "-c", script, "sh", *argv(how + ("_first" if is_first else ""), mount)]
        done = harness.record(mount / "recording", program, env=light.env)
        processes, events, size = ((1, given.BLOCKS, given.BLOCKS * given.BLOCK_BYTES) if is_first else
                                   (given.CHILDREN, ALL_EVENTS, ALL_BYTES))
        assert done.stdout == (b"%d\n" % given.BLOCKS if is_first else b"6\n" * given.CHILDREN), done
        check(done, mount / "recording", reason, processes, events, size)
        if not is_first:
            check_analysis(done, mount / "recording", reason, events)


def test_what_they_lost_is_told_also_where_run_was_killed(tmp_path, light):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    recording = tmp_path / "recording"
    with subprocess.Popen(harness.run_argv(recording, argv("user", tmp_path)), env=dict(light.env, STAY="1"), start_new_session=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        for _ in range(given.CHILDREN):
            assert run.stdout.readline() == b"6\n"
        keeper = keeper_of(run.pid)
        program = meta(recording)["pid"]
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        os.killpg(run.pid, signal.SIGKILL)  # the program and its children; the keeper is in a session of its own
    wait_for_end(program)
    wait_for_end(keeper)
    named = meta(recording)["not_recorded"]
    assert [(n["reason"], n["processes"], n["lost_events"], n["lost_bytes"]) for n in named] == [
        (REASONS["user"], given.CHILDREN, ALL_EVENTS, ALL_BYTES)]
    assert harness.analysis(recording)["lost"]["events"] == ALL_EVENTS


def keeper_of(run):
    children = subprocess.run(["ps", "--ppid", str(run), "-o", "pid=,comm="], capture_output=True, text=True, check=True).stdout
    return int(next(line.split()[0] for line in children.splitlines() if "gmp-keeper" in line))


def wait_for_end(pid):
    for _ in range(3_000):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
        except OSError:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} does not end")


def test_the_keeper_keeps_nobody_waiting(tmp_path, light):
    """A pipe ends with the program; the keeper ends with `run`, and holds none of its descriptors."""
    program = [harness.PYTHON, "-c", "from light import Block; import time, sys; b = Block(5000); print('ready', flush=True);"
                                     "sys.stdin.read()"]
    env = dict(light.env, PYTHONPATH=str(harness.PROGRAMS))
    with subprocess.Popen(harness.run_argv(tmp_path / "recording", program), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"ready\n"
        keeper = keeper_of(run.pid)
        held = sorted(os.readlink(f"/proc/{keeper}/fd/{fd}") for fd in os.listdir(f"/proc/{keeper}/fd"))
        assert [h for h in held if h == "/dev/null"] and not [h for h in held if h.startswith("pipe:")], held
        assert os.readlink(f"/proc/{keeper}/cwd") == "/" and os.getsid(keeper) == keeper
        assert harness.execute(["ps", "-o", "args=", "-p", keeper]).stdout.strip() == b"gmp-keeper"
        os.kill(keeper, signal.SIGTERM)  # as at the end of a session; it stays
        run.communicate(b"")
        assert run.returncode == 0
    assert not os.path.exists(f"/proc/{keeper}")


IN_A_PID_NAMESPACE = """import ctypes, os, light
first, libc = light.Block(100), ctypes.CDLL(None)
if libc.unshare(0x20020000) != 0:  # CLONE_NEWPID, CLONE_NEWNS
    os._exit(9)
if os.fork() == 0:
    libc.mount(b"none", b"/", None, 0x44000, None)  # MS_PRIVATE, MS_REC
    libc.mount(b"proc", b"/proc", b"proc", 0, None)
    if os.fork() == 0:
        os.setgid(65534), os.setuid(65534)
        kept = [light.Block(5000) for i in range(40)]
        print(os.getpid(), flush=True)
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
"""


def test_a_process_with_another_number_in_a_namespace_of_its_own_is_followed_to_its_end(tmp_path, light):
    """Number 2 there is a thread of the kernel's here, which never ends, and the keeper would not."""
    if os.geteuid() != 0 or harness.execute(["unshare", "--pid", "--fork", "--mount-proc", "true"]).rc:
        pytest.skip("needs root and PID namespaces")
    program = [harness.PYTHON, "-c", IN_A_PID_NAMESPACE]
    with subprocess.Popen(harness.run_argv(tmp_path / "recording", program), env=dict(light.env, PYTHONPATH=str(harness.PROGRAMS)),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"2\n"
        keeper = keeper_of(run.pid)
        run.communicate()
    wait_for_end(keeper)
    (named,) = meta(tmp_path / "recording")["not_recorded"]
    assert (named["lost_bytes"], named["reason"]) == (200_000, REASONS["user"])
