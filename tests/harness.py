"""Runs programs under the recorder and reads what it recorded.

Everything goes through the command, as a user would: `run`, `export --to jsonl`, `analyze --format json`.
GPUMEMPROF_BIN names another command and GPUMEMPROF_PROBE another library than those of this tree.
"""
import collections
import functools
import glob
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs"
COMMAND = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv" / "bin" / "gpumemprof"))
PYTHON = sys.executable
TORCH_LIB = Path(sysconfig.get_paths()["purelib"]) / "torch" / "lib"
FRAME = re.compile(r"^(?P<file>.*):(?P<line>\d+) (?P<function>\S+)$", re.DOTALL)

Frame = collections.namedtuple("Frame", "file line function")


@functools.lru_cache(maxsize=None)
def pythons():
    """{"3.9": path}: the CPythons found here, on the PATH, of pyenv or of scripts/free-threaded."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = {}
    for version in (*(f"3.{minor}" for minor in range(9, 15)), "3.13t", "3.14t"):
        places = (f"{root}/versions/{version}.*/bin/python{version}", f"{ROOT}/build/pythons/{version}/bin/python{version}")
        for path in (shutil.which(f"python{version}"), *(path for place in places for path in glob.glob(place))):
            if path and subprocess.run([path, "-c", "import ctypes"], capture_output=True, check=False).returncode == 0:
                found[version] = path
                break
    return found


class Finished:
    """A program that has ended: `rc` as a shell shows it (128 + signal), bytes of stdout and stderr."""

    def __init__(self, rc, stdout, stderr, folder=None):
        self.rc = rc if rc >= 0 else 128 - rc
        self.stdout, self.stderr, self.folder = stdout, stderr, folder

    def __repr__(self):
        return f"rc={self.rc}\nstdout: {self.stdout[-2000:]!r}\nstderr: {self.stderr[-3000:]!r}"

    def ok(self):
        assert self.rc == 0, repr(self)
        return self

    def printed(self):
        """What the program printed, one JSON value a line."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def fresh_pages(size_bytes):
    """Memory that was not resident before: malloc may hand out pages that an earlier test left resident."""
    pages = mmap.mmap(-1, size_bytes)
    pages[:: mmap.PAGESIZE] = b"x" * (size_bytes // mmap.PAGESIZE)
    return pages


def until(condition, seconds=30):
    """What `condition()` answers once that is true, or at last."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return answer


def execute(argv, folder=None, *, timeout=60, **popen):
    popen.setdefault("stdin", subprocess.DEVNULL)
    popen.setdefault("stdout", subprocess.PIPE)
    popen.setdefault("stderr", subprocess.PIPE)
    popen.setdefault("start_new_session", True)
    with subprocess.Popen([str(a) for a in argv], **popen) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            raise AssertionError(f"no end after {timeout} s: {argv}\n{stderr[-2000:]!r}") from None
    return Finished(process.returncode, stdout, stderr, folder)


@functools.cache
def out_of_sight():
    """Words before a command that then sees no process but its own; the test is skipped where that is not allowed."""
    for user in ([], ["--user", "--map-root-user"]):
        words = ["unshare", *user, "--pid", "--fork", "--mount-proc"]
        if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    pytest.skip("needs a /proc of its own (unshare --pid --mount-proc)")


@functools.cache
def has(python, module):
    """Whether a Python finds a module, which is not imported."""
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", found], capture_output=True, check=False).returncode == 0


def without_package():
    """Options of Python and an environment in which PyTorch is there and the package is not, as its .pth file is not read."""
    return ["-S"], {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"]}


def run_argv(folder, argv, options=()):
    return [COMMAND, "run", "-o", str(folder), *options, "--", *[str(a) for a in argv]]


def record(folder, argv, options=(), **popen):
    """Records argv into `folder`, which must not exist yet."""
    return execute(run_argv(folder, argv, options), folder, **popen)


def events(path, may_lack_some=False):
    """Every event of a recording, as `export --to jsonl` prints them, which fails where it lacks events."""
    done = execute([COMMAND, "export", path, "--to", "jsonl"])
    assert done.rc == 0 or may_lack_some and done.rc == 1 and b"LOST: " in done.stderr, done
    return [json.loads(line) for line in done.stdout.decode("utf-8", "strict").splitlines()]


def analysis(path):
    done = execute([COMMAND, "analyze", path, "--format", "json"]).ok()
    return json.loads(done.stdout)


def allocs(all_events):
    return [e for e in all_events if e["action"] == "alloc"]


def frames(event):
    """The stack of an event, allocating line first; a line that is no frame is kept as text."""
    result = []
    for line in event.get("stack", []):
        match = FRAME.match(line)
        result.append(Frame(match["file"], int(match["line"]), match["function"]) if match else line)
    return result


def by_size(all_events):
    """Allocations by size; tests give each of their tensors a size of its own."""
    sizes = collections.defaultdict(list)
    for event in allocs(all_events):
        sizes[event["size_bytes"]].append(event)
    return sizes


def pid_of(event):
    """The PID in the `process` of an event, which may name the host and the start as well."""
    process = event["process"]
    if isinstance(process, int):
        return process
    parts = str(process).split(".")
    return int(parts[-2] if len(parts) > 2 else parts[-1])


def files(folder):
    return sorted(Path(folder).glob("*.gmp"))


def without_summary(with_us, without):
    """What the recorder added to stderr. The program's own stderr must come first, byte for byte."""
    ours, theirs = once_terminated(with_us.stderr), once_terminated(without.stderr)
    assert ours.startswith(theirs), f"{with_us.stderr!r}\nis not\n{without.stderr!r}"
    return ours[len(theirs):].decode()


def once_terminated(stderr):
    """Several daemon threads that the C++ runtime terminates at once say so in any order and number, with us or without."""
    return re.sub(rb"(terminate called (recursively|without an active exception)\n)+",
                  b"terminate called without an active exception\n", stderr)


def normal_text(data):
    """stderr of PyTorch's own logger names a PID and a time; numbers there cannot be the same twice."""
    return re.sub(rb"\d+", b"N", data)


class NaivePeak:
    """The plainest way to a peak: a dictionary of live blocks, read twice. Shares no code with the analysis."""

    def __init__(self, device_events):
        self.peak_bytes, self.peak_index = 0, -1
        self.unmatched = self.repeated = 0
        self.live = {}
        live_bytes = 0
        for index, live_bytes in self._replay(device_events):
            if live_bytes > self.peak_bytes:
                self.peak_bytes, self.peak_index = live_bytes, index
        self.end_bytes, self.end_live = live_bytes, self.live
        counts = self.unmatched, self.repeated
        for _ in self._replay(device_events[: self.peak_index + 1]):
            pass
        self.peak_live = list(self.live.values())
        self.unmatched, self.repeated = counts

    def _replay(self, device_events):
        self.live, self.unmatched, self.repeated = {}, 0, 0
        live_bytes = 0
        for index, event in enumerate(device_events):
            address = event.get("address")
            if event["action"] == "alloc":
                if address in self.live:
                    self.repeated += 1
                    live_bytes -= self.live[address]["size_bytes"]
                self.live[address] = event
                live_bytes += event["size_bytes"]
            elif event["action"] in ("free_completed", "free_requested"):
                block = self.live.pop(address, None)
                self.unmatched += block is None
                live_bytes -= block["size_bytes"] if block else 0
            yield index, live_bytes
