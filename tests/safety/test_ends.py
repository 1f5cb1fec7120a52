"""However a program ends, it ends so with a recorder too: Ctrl-C by SIGINT, as a shell's loop wants it, and not with 1."""

import json
import re
import signal

import pytest

import harness

PROGRAM = harness.PROGRAMS / "ends.py"
# Python's own rules: an interrupt that nobody caught ends the process by the signal, a subclass of it with 1.
BY_SIGNAL = ("raised", "while_it_computes", "through_finally", "after_another", "in_a_join", "in_asyncio", "in_a_pool")
WITH_CODE = {"in_a_thread": 0, "subclass": 1, "leaves_with_text": 1, "leaves_with_a_number": 3, "generator_exit": 1, "fails": 1,
             "fails_in_a_thread": 0}  # fmt: skip
EXPECTED = {way: int(signal.SIGINT) for way in BY_SIGNAL} | {way: code << 8 for way, code in WITH_CODE.items()}


@pytest.fixture(scope="module")
def without():
    pytest.importorskip("torch")
    done = harness.execute([harness.PYTHON, PROGRAM], timeout=120).ok()
    assert json.loads(done.stdout) == EXPECTED
    return done


def said(done):
    """Without the frames, as a signal may come a line earlier or later, and without numbers of threads."""
    lines = [line for line in done.stderr.splitlines() if not line.startswith(b" ")]
    return [re.sub(rb"0x[0-9a-f]+|-\d+\b", b"N", line) for line in lines]


@pytest.mark.parametrize("options", [(), ("--explain-leaks",)], ids=str)
def test_every_end_is_what_it_is_without_a_recorder(tmp_path, without, options):
    with_us = harness.record(tmp_path / "r", [harness.PYTHON, PROGRAM], ["-q", *options], timeout=120).ok()
    assert json.loads(with_us.stdout) == EXPECTED
    assert said(with_us) == said(without)


def test_every_end_is_what_it_is_where_the_program_attached_itself(tmp_path, without):
    attached = harness.execute([harness.PYTHON, PROGRAM, tmp_path / "r"], timeout=120).ok()
    assert json.loads(attached.stdout) == EXPECTED
    assert said(attached) == said(without)


def test_a_shells_loop_ends_at_ctrl_c(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "interrupted.py").write_text(
        "import os, signal, time, torch\ntorch.empty(1000)\nprint('round', flush=True)\nos.kill(0, signal.SIGINT)\ntime.sleep(30)\n"
    )
    loop = 'for i in 1 2 3; do "$@"; done; echo went on'
    argv = harness.run_argv(tmp_path / "r", [harness.PYTHON, "-m", "interrupted"], ["-q"])
    done = harness.execute(["bash", "-c", loop, "bash", *argv], cwd=tmp_path)
    assert (done.stdout, done.rc) == (b"round\n", 128 + signal.SIGINT)


FRAMEWORKS = {
    "tensorflow": "import tensorflow as tf\ntf.function(lambda x: x + 1)(tf.ones([1000]))\n",
    "jax": "import jax\njax.jit(lambda x: x + 1)(jax.numpy.ones(1000)).block_until_ready()\n",
    "keras": "import keras\nkeras.Sequential([keras.layers.Dense(4)])(keras.ops.ones((2, 3)))\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_program_of_another_framework_ends_by_the_signal(tmp_path, framework):
    pytest.importorskip(framework)
    argv = [harness.PYTHON, "-c", FRAMEWORKS[framework] + "raise KeyboardInterrupt"]
    for done in harness.execute(argv, timeout=120), harness.record(tmp_path / "r", argv, ["-q"], timeout=120):
        assert done.rc == 128 + signal.SIGINT, done
