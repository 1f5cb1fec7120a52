"""Every CPython that is found on this machine: stacks and lines of recordings, and of the line tracer."""

import os
import pathlib
import subprocess

import pytest

import harness

HERE = pathlib.Path(__file__).parent
VERSIONS = [*(f"3.{minor}" for minor in range(9, 15)), "3.13t", "3.14t"]


@pytest.fixture(params=VERSIONS)
def python(request):
    found = harness.pythons().get(request.param)
    if not found:
        pytest.skip(f"no Python {request.param} here")
    return found


def passes(argv, env=None):
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout + done.stderr


def test_recordings_have_the_stacks_and_sizes_that_programs_say(python, light):
    env = dict(light.env, PYTHONPATH=str(HERE / "standin"))
    passes([python, HERE / "check_recording.py", harness.COMMAND], env)


def test_lines_are_counted_as_often_as_they_begin(python):
    passes([python, HERE / "check_lines.py", harness.ROOT / "python/gpumemprof/_profiling/line_tracer.py"])


def test_every_instruction_of_the_standard_library_has_the_line_that_the_interpreter_gives_it(python, line_decoder):
    passes([python, HERE / "check_line_tables.py", line_decoder], dict(os.environ, PYTHONPATH=""))
