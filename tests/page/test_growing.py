"""A recording that is still written: the page says so, and reads it again."""

import subprocess
import sys
import time

import harness
import pytest

pytest.importorskip("torch")

PROGRAM = """
import sys, torch
kept = [torch.empty(1000) for _ in range(100)]
print("ready", flush=True)
sys.stdin.readline()
kept += [torch.empty(1000) for _ in range(250)]
print("more", flush=True)
sys.stdin.readline()
"""


def wait_for(page, ask, what):
    for _ in range(400):
        state = page.ask("state")["files"][0]
        if ask(state):
            return state
        time.sleep(0.05)
    raise AssertionError((what, state))


def blocks(page):
    devices = page.run()["files"][0]["devices"]
    return max(device["blocks"] for device in devices)


def test_a_recording_that_grows_is_read_again(tmp_path, view):
    program, folder = tmp_path / "grows.py", tmp_path / "recording"
    program.write_text(PROGRAM)
    running = subprocess.Popen([harness.COMMAND, "run", "-o", folder, "--", sys.executable, program],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        for line in running.stdout:
            if line.strip() == "ready":
                break
        page = view(folder)
        before = blocks(page)
        assert before >= 100
        first = wait_for(page, lambda state: state["is_written"], "is written")
        print("", file=running.stdin, flush=True)
        for line in running.stdout:
            if line.strip() == "more":
                break
        page.ask("read_again", file=0)
        wait_for(page, lambda state: state["generation"] > first["generation"], "was read again")
        assert blocks(page) == before + 250
    finally:
        running.communicate("\n", timeout=60)
    # The program's end seals its files: they are others than those that were read.
    wait_for(page, lambda state: state["has_changed"] and not state["is_written"], "has changed")
    now = page.ask("state")["files"][0]["generation"]
    page.ask("read_again", file=0)
    last = wait_for(page, lambda state: state["generation"] > now, "was read again")
    assert not last["has_changed"] and not last["is_written"]
    assert blocks(page) >= before + 250


def test_a_file_that_is_gone_leaves_what_was_read(tmp_path, view):
    copy = tmp_path / "run.gmp"
    copy.write_bytes((harness.ROOT / "tests" / "fixtures" / "recordings" / "streams_2.13.gmp").read_bytes())
    page = view(copy)
    run = page.run()
    wait_for(page, lambda state: not state["has_changed"] and state["generation"] == 1, "was read")
    copy.unlink()
    wait_for(page, lambda state: state["has_changed"], "has changed")
    page.ask("read_again", file=0)
    assert wait_for(page, lambda state: state["error"], "an error")["error"]
    assert page.run() == run
