"""Programs timed in turn, with programs whose answers are known."""
import pathlib
import random
import sys
import time

import launch
import pytest
import turns

ANSWERS = "print(0, flush=True)\nfor line in __import__('sys').stdin: print({answer}, flush=True)"


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def program(text):
    return [sys.executable, "-c", text]


def test_every_program_has_one_block_a_round():
    commands = {name: program(ANSWERS.format(answer=answer)) for name, answer in (("a", 1.5), ("b", 2.5))}
    assert turns.in_turn(commands, 3, random.Random(1)) == {"a": [1.5] * 3, "b": [2.5] * 3}


def test_a_program_that_ends_early_is_a_failure_with_its_last_words():
    commands = {"a": program("print(0, flush=True); input(); raise SystemExit('no memory')")}
    with pytest.raises(launch.Failed, match="has ended: no memory"):
        turns.in_turn(commands, 2, random.Random(1))


def test_what_is_no_number_is_a_failure():
    with pytest.raises(launch.Failed, match="said 'Loading'"):
        turns.in_turn({"a": program("print('Loading', flush=True); input()")}, 1, random.Random(1))


def test_nothing_that_was_started_is_left_behind(tmp_path):
    child = tmp_path / "child"
    text = f"import subprocess as s; c = s.Popen(['sleep', '600'], stdout=s.DEVNULL); open({str(child)!r}, 'w').write(str(c.pid))"
    with pytest.raises(launch.Failed, match="has ended: no memory"):
        turns.in_turn({"a": program(f"{text}; print(0, flush=True); input(); raise SystemExit('no memory')")}, 1,
                      random.Random(1))
    pid = int(child.read_text())
    for _ in range(1000):  # a signal takes a moment
        if is_gone(pid):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} still runs")


def test_a_program_that_fails_at_its_end_is_a_failure():
    commands = {"a": program(ANSWERS.format(answer=1) + "\nraise SystemExit(3)")}
    with pytest.raises(launch.Failed, match="ended with 3"):
        turns.in_turn(commands, 1, random.Random(1))
