import collections
import contextlib
import fcntl
import os
import shutil
import signal
from pathlib import Path

import pytest

import harness
import nested

# TensorFlow takes oneDNN, and with it a second allocator, by itself on some processors alone.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def pytest_sessionstart(session):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what is in the background, and a child inherits
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if shutil.which(harness.COMMAND) is None:
        pytest.exit(f"no command at {harness.COMMAND}: run `make`, or set GPUMEMPROF_BIN", returncode=2)


def pytest_sessionfinish(session):
    nested.NESTS.close()


# Few tests, each of minutes: begun last, one worker would be alone with them.
LONG = ("test_leaks_found.py",)


def pytest_collection_modifyitems(items):
    """Workers take whole files: the longest first, then those with the most tests."""
    tests = collections.Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.name not in LONG, -tests[item.path]))


@contextlib.contextmanager
def locked(path, how):
    with open(path, "w") as file:
        fcntl.flock(file, how)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a child that is left may have it open, too


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """No other worker runs a test beside one that is marked `alone`. Who waits to be alone keeps the next ones at the door."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    folder = Path(item.config.option.basetemp).parent
    alone = item.get_closest_marker("alone")
    with contextlib.ExitStack() as inside:
        with locked(folder / "door", fcntl.LOCK_EX):
            inside.enter_context(locked(folder / "room", fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        return (yield)


@pytest.fixture
def record(tmp_path):
    """record(argv, options=(), **popen) -> Finished; every call gets a folder of its own."""
    count = 0

    def run(argv, options=(), **popen):
        nonlocal count
        count += 1
        return harness.record(tmp_path / f"recording{count}", argv, options, **popen)

    return run


class Light:
    """PyTorch's allocator without PyTorch: `program` and, with `env`, tests/programs/light.py."""

    def __init__(self, folder):
        self.library, self.program, self.hostile = folder / "liballocate.so", folder / "allocate", folder / "hostile"
        link = [f"-L{harness.TORCH_LIB}", "-l:libc10.so", f"-Wl,-rpath,{harness.TORCH_LIB}", "-Wl,--allow-shlib-undefined"]
        for source, argv in (("allocate.c", ["-shared", "-fPIC", "-o", self.library]),
                             ("allocate.c", ["-DPROGRAM", "-o", self.program]),
                             ("hostile.c", ["-o", self.hostile])):
            harness.execute(["gcc", "-O1", "-w", harness.PROGRAMS / source, *argv, *link]).ok()
        # From Python 3.12 on a fork beside threads is warned of, with the PID.
        self.env = dict(os.environ, ALLOCATE_LIBRARY=str(self.library), PYTHONWARNINGS="ignore::DeprecationWarning")


@pytest.fixture(scope="session")
def light(tmp_path_factory):
    return Light(tmp_path_factory.mktemp("light"))

try:  # this process has tests of figures without a probe: nothing may attach one to it
    from gpumemprof._counting import attaching
except ImportError:  # the package is not built
    pass
else:
    attaching._why_not = "this process runs tests"
