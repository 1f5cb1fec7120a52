"""Where things are, and how a program is started with and without the recorder."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
PROGRAMS = os.path.join(BENCH, "programs")
BUILD = os.path.abspath(os.environ.get("GPUMEMPROF_BUILD", os.path.join(ROOT, "build")))
WORK = os.path.join(BUILD, "bench", "work")
PYTHON = sys.executable
TIMEOUT_S = 300


class Failed(Exception):
    """A command of the benchmark did not do its work: its row says so, the others go on."""


def made(path):
    if not os.path.exists(path):
        raise Failed(f"{os.path.relpath(path, ROOT)} is not there: run make first")
    return path


def gpumemprof():
    """The command; GPUMEMPROF_BIN names another."""
    return made(os.environ.get("GPUMEMPROF_BIN", os.path.join(ROOT, ".venv", "bin", "gpumemprof")))


def helper(name):
    return made(os.path.join(BUILD, "bench", name))


def program(name, *arguments):
    return [PYTHON, os.path.join(PROGRAMS, name), *map(str, arguments)]


@contextlib.contextmanager
def folder():
    """A fresh folder on the disk of the build, removed at the end."""
    os.makedirs(WORK, exist_ok=True)
    path = tempfile.mkdtemp(dir=WORK)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def recorded(command, recording, stacks="python", options=()):
    return [gpumemprof(), "run", "-o", recording, "--stacks", stacks, *options, "--", *command]


def environment():
    """That of a measured program."""
    return {**os.environ, "BENCH_WORK": WORK, "KINETO_LOG_LEVEL": "5"}


def last_words(stderr):
    return " | ".join(stderr.strip().splitlines()[-3:])


def run(command):
    """stdout of `command`; Failed with the end of its stderr where it fails."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failed(f"{os.path.basename(command[0])} did not end within {TIMEOUT_S} s") from None
    if result.returncode != 0:
        raise Failed(f"{os.path.basename(command[0])} ended with {result.returncode}: {last_words(result.stderr)}")
    return result.stdout


def last_json(stdout):
    """The programs print one line of JSON, and nothing of ours may come between."""
    lines = stdout.strip().splitlines()
    if not lines:
        raise Failed("the program printed nothing")
    return json.loads(lines[-1])


def run_json(command):
    return last_json(run(command))


def run_recorded(command, stacks="python", options=()):
    with folder() as path:
        return run_json(recorded(command, os.path.join(path, "recording"), stacks, options))


def timed(command):
    """What peak.py says of a command, as a dictionary, and the command's stdout."""
    result = subprocess.run([PYTHON, "-I", "-S", os.path.join(BENCH, "peak.py"), *command],
                            capture_output=True, text=True)
    facts = json.loads(result.stderr.strip().splitlines()[-1])
    if result.returncode != 0 or facts["exit"] != 0:
        raise Failed(f"{' '.join(command[:2])} ended with {facts['exit']}: "
                     + " | ".join(result.stderr.strip().splitlines()[:-1][-3:]))
    return facts, result.stdout
