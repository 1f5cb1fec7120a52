"""Runs short programs whose imports another process has done already: it forks, and the child is the program.

For tests of what is told of a program: PyTorch's imports are most of its CPU time. A test of how a process is launched or
ends, or of what `run` says of it, uses harness.record().
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import harness

FINISHED_AT, FINISHED_BYTES = 1216, 8  # format.h: FinishedFile.bytes, not zero when all of a file is there

TORCH = ("torch._dynamo", "torch.utils.data")  # what an optimizer imports, and a loader
BASE = dict(os.environ)
READ_AT_START = ("CUDA_", "GPUMEMPROF_", "KERAS_", "LD_", "MKL_", "OMP_", "PYTHON", "TF_", "TORCH_")


class Nest:
    """One process with these modules, under `run` where there are options; it runs one program at a time."""

    def __init__(self, place, python, imports, options, environment):
        self.place, self.folder = place, place / "recordings"
        argv = [python, str(harness.PROGRAMS / "nest.py"), *imports]
        argv = argv if options is None else harness.run_argv(self.folder, argv, ["-q", *options])
        self.log = open(place / "log", "w+b")
        self.process = subprocess.Popen(argv, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        start_new_session=True, env={**BASE, **dict(environment)})  # fmt: skip
        assert self.answer(300) == b"ready\n"

    def execute(self, argv, folder, cwd, environment, timeout):
        """harness.Finished of one program; what was recorded of it and its children is then in `folder`."""
        before = self.names()
        streams = {name: self.place / name for name in ("stdout", "stderr")}
        for path in streams.values():
            path.write_bytes(b"")
        request = {"argv": argv, "cwd": str(cwd or os.getcwd()), "environment": environment,
                   **{name: str(path) for name, path in streams.items()}}  # fmt: skip
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        pid = int(self.answer(60))
        try:
            status = int(self.answer(timeout))
        except TimeoutError:
            os.killpg(pid, signal.SIGKILL)
            self.answer(60)
            printed = streams["stderr"].read_bytes()[-2000:]
            raise AssertionError(f"no end after {timeout} s: {argv}\n{printed!r}") from None
        if folder is not None:
            folder.mkdir()
            for path in self.finished(before):
                shutil.move(path, folder / path.name)
        outputs = [path.read_bytes() for path in streams.values()]
        return harness.Finished(os.waitstatus_to_exitcode(status), *outputs, folder)

    def answer(self, seconds):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise TimeoutError
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise AssertionError(f"the nest ended: {self.log.read()[-2000:]!r}")
        return line

    def names(self):
        """Files of recorded processes: not the samples and the description of the whole run, nor what is half written."""
        names = os.listdir(self.folder) if self.folder.exists() else []
        return {name for name in names if not name.endswith((".gms", ".tmp")) and name != "meta.json"}

    def finished(self, before):
        """What is new, once `run` has handed over what it keeps of the ended processes."""
        deadline = time.monotonic() + 60
        while True:
            new = [self.folder / name for name in self.names() - before]
            left = [path for path in new if path.suffix == ".gmp" and not is_finished(path)]
            if not left:
                return new
            assert time.monotonic() < deadline, f"{left} are not finished"
            harness.execute([harness.COMMAND, "seal", self.folder]).ok()
            time.sleep(0.05)

    def end(self):
        if self.log.closed:
            return
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.place, ignore_errors=True)


def is_finished(path):
    """Whether nobody writes it again: who finishes a file holds its lock until a smaller one has its name."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        file.seek(FINISHED_AT)
        return os.fstat(file.fileno()).st_ino == os.stat(path).st_ino and any(file.read(FINISHED_BYTES))


NESTS = contextlib.ExitStack()  # conftest.py closes it
MOST_IDLE = 4  # an idle one has 200 MiB, and its `run` takes 1.5 % of a CPU
_idle = []  # (key, Nest), the last used at the end


@contextlib.contextmanager
def nest(*key):
    """One that nobody else uses meanwhile; after an error it is not used again."""
    at = next((i for i, (known, _) in enumerate(_idle) if known == key), None)
    if at is None:
        one = Nest(Path(tempfile.mkdtemp(prefix="gpumemprof-nest-")), *key)
        NESTS.callback(one.end)
    else:
        one = _idle.pop(at)[1]
    yield one
    _idle.append((key, one))
    while len(_idle) > MOST_IDLE:
        _idle.pop(0)[1].end()


def _run(argv, folder, options, imports, env, cwd, timeout):
    python, *words = map(str, argv)
    if words[0] != "-c":
        words[0] = os.path.abspath(words[0])
    more = {name: value for name, value in (os.environ if env is None else env).items() if BASE.get(name) != value}
    at_start = tuple(sorted((name, more.pop(name)) for name in list(more) if name.startswith(READ_AT_START)))
    with nest(python, imports, options, at_start) as one:
        return one.execute(words, folder, cwd, more, timeout)


def record(folder, argv, options=(), *, imports=TORCH, env=None, cwd=None, timeout=120):
    """As harness.record() of a Python program, with options that many share; `run` writes no summary."""
    options = tuple(one for one in options if one not in ("-q", "--quiet"))
    return _run(argv, Path(folder), options, imports, env, cwd, timeout)


def execute(argv, *, imports=TORCH, env=None, cwd=None, timeout=120):
    """As harness.execute() of a Python program."""
    return _run(argv, None, None, imports, env, cwd, timeout)
