"""Who looks through a program's objects for what holds a leak calls nothing of them, and no tracer hears of the look."""

import json

import pytest

import harness

PROGRAM = harness.PROGRAMS / "looked_at.py"


def test_a_look_calls_nothing_of_the_program(record):
    pytest.importorskip("torch")
    without = harness.execute([harness.PYTHON, PROGRAM]).ok()
    with_us = record([harness.PYTHON, PROGRAM], ["-q", "--explain-leaks"]).ok()
    begun = without.stdout.index(b"begin")
    assert b"called" not in without.stdout[begun:]  # so what the program does itself is silent there
    assert with_us.stdout == without.stdout and with_us.stderr == without.stderr
    (found,) = with_us.folder.glob("holders.*.json")
    looks = json.loads(found.read_text())["looks"]
    names = {holder["name"] for look in looks for holder in look["holders"]}
    assert {"kept", "many"} <= names and not any(look["why_incomplete"] for look in looks)
