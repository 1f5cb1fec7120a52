"""A release of TensorFlow of which some functions come to the recorder and some do not is not recorded wrongly: its
recording ends, the program goes on, and what was not recorded is counted in every report."""
import json
import os

import pytest

import harness
from launching import UNTIL_SEEN
from probe import exact

PROGRAM = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).use(int(sys.argv[2]))"
ATTACH = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.use(1)
probe = ctypes.CDLL(sys.argv[3])
probe.gpumemprof_attach_error.restype = ctypes.c_char_p
assert probe.gpumemprof_attach(sys.argv[4].encode(), 0) == 1, probe.gpumemprof_attach_error()
library.use(int(sys.argv[2]))
"""
TIMES = 500


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    def make(*flags):
        path = tmp_path_factory.mktemp("unfit") / "libtensorflow_fake.so"
        source = harness.ROOT / "tests/probe/unfit_tensorflow.cc"
        harness.execute(["g++", "-O1", "-std=c++17", "-shared", "-fPIC", *flags, source, "-o", path]).ok()
        return path

    return make


def recorded(library, record):
    alone = harness.execute([harness.PYTHON, "-c", PROGRAM, library, TIMES]).ok()
    done = record([harness.PYTHON, "-c", PROGRAM, library, TIMES]).ok()
    assert done.stdout == alone.stdout == b"%d %d\n" % (2 * TIMES, 2 * TIMES)
    return done


def test_one_that_fits_is_recorded_whole(library, record):
    done = recorded(library(), record)
    devices = {d["device"]: d["events"] for d in harness.analysis(done.folder)["devices"]}
    assert set(devices) == {"tensorflow:fake_cpu_bfc", "tensorflow:cpu"}
    for events in devices.values():
        assert (events["alloc"], events["free_completed"]) == (TIMES, TIMES)
    assert harness.analysis(done.folder)["lost"]["events"] == 0


# What the recording ends with, and how many events it has by then.
UNFIT = [
    # At the first block, before a function is called by its place in the table.
    (["-DOTHER_SHAPE"], "unknown layout of its allocator class", 0),
    (["-DOTHER_FREE"], "unknown layout of its allocator class", 0),
    # The ninth block at one address is the eighth that was not freed before.
    (["-DNO_FREE"], "its allocations arrive, its frees do not", 9 + 2 * 9),
    (["-DNO_ALLOC"], "its frees arrive, its allocations do not", 64 + 2 * 64),
]


@pytest.mark.parametrize(("flags", "reason", "events"), UNFIT, ids=[flags[0][2:] for flags, _, _ in UNFIT])
def test_one_that_does_not_ends_its_recording_and_says_so(library, record, flags, reason, events):
    done = recorded(library(*flags), record)
    analysis = harness.analysis(done.folder)
    assert analysis["source"]["events"] <= events
    (lost,) = analysis["lost"]["reasons"]
    assert reason in lost["reason"] and lost["events"] == analysis["lost"]["events"] > 0
    # All that the hooks heard is either there or counted: the one at which it ended is counted too.
    heard = {"-DOTHER_SHAPE": 4, "-DOTHER_FREE": 3, "-DNO_FREE": 3, "-DNO_ALLOC": 3}[flags[0]] * TIMES
    assert abs(analysis["source"]["events"] + lost["events"] - heard) <= 2
    for text in (done.stderr.decode(), harness.execute([harness.COMMAND, "analyze", done.folder]).ok().stdout.decode()):
        assert reason in text, text


def test_after_attaching_it_is_found_out_too(library, tmp_path):
    folder = tmp_path / "recording"
    argv = [harness.PYTHON, "-c", ATTACH, library("-DNO_FREE"), TIMES, exact.library(), folder]
    harness.execute(argv, env={**os.environ, "LD_PRELOAD": ""}).ok()
    (lost,) = harness.analysis(folder)["lost"]["reasons"]
    assert "its allocations arrive, its frees do not" in lost["reason"]


@pytest.fixture(scope="module")
def unbound(tmp_path_factory):
    """Its own calls and tables lead to its own functions, whatever is preloaded."""
    path = tmp_path_factory.mktemp("unbound") / "libtensorflow_framework.so.2"
    source = harness.ROOT / "tests/probe/unfit_tensorflow.cc"
    flags = ["-O1", "-std=c++17", "-shared", "-fPIC", "-Wl,-Bsymbolic"]
    harness.execute(["g++", *flags, source, "-o", path]).ok()
    return path


def test_one_that_never_calls_us_is_named_in_the_summary(unbound, record):
    program = PROGRAM + "\n" + UNTIL_SEEN
    done = record([harness.PYTHON, "-c", program, unbound, TIMES]).ok()
    assert b"PyTorch, TensorFlow or JAX was loaded" in done.stderr and b"(-Bsymbolic or static build)" in done.stderr


def test_attaching_to_one_that_never_calls_us_fails_with_the_reason(unbound, tmp_path):
    argv = [harness.PYTHON, "-c", ATTACH, unbound, TIMES, exact.library(), tmp_path / "recording"]
    done = harness.execute(argv, env={**os.environ, "LD_PRELOAD": ""})
    assert done.rc != 0 and b"no class's table leads to tsl::BFCAllocator" in done.stderr


COUNTED = """
import ctypes, json, sys
from gpumemprof import counters
from tfmemprof._source import TensorFlowSource, why_uncounted
from tfmemprof.devices import TFDevice
assert counters.exact_available()[0]
source = TensorFlowSource(TFDevice("cpu", 0), True, "")
source._decided, source._in_question = "exact", ("exact",)  # as after a self-test that was passed
span = source.begin()
before = [source.kind, why_uncounted()]
ctypes.CDLL(sys.argv[1]).use(int(sys.argv[2]))
figures = source.figures(span.end())
print(json.dumps([before, source.kind, figures.peak_is_exact, figures.basis_reason, source.basis_reason]))
"""


@pytest.mark.parametrize("flags", [[], ["-DNO_FREE"]], ids=["fits", "NO_FREE"])
def test_counters_of_the_package_say_when_they_stand_still(library, record, flags):
    env = {**os.environ, "PYTHONPATH": str(harness.ROOT / "python")}
    done = record([harness.PYTHON, "-c", COUNTED, library(*flags), TIMES], env=env).ok()
    before, kind, exact, of_span, reason = json.loads(done.stdout.splitlines()[-1])
    assert before == ["exact", ""]
    if not flags:
        assert (kind, exact) == ("exact", True) and "no longer counts" not in of_span + reason
        return
    assert (kind, exact) == ("host", False)
    for text in (of_span, reason):
        assert "no longer counts TensorFlow: its allocations arrive, its frees do not" in text
