"""The Python examples of the documents run as written and print true figures, under `gpumemprof run` and without."""

import contextlib
import importlib.util
import json
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import documents
import harness
import nested
import pytest

HERE = Path(__file__).parent
BLOCK_S = 120

if reason := documents.missing():
    pytest.skip(reason, allow_module_level=True)
pytest.importorskip("torch")

import table  # noqa: E402
from given import GPU  # noqa: E402

_port = threading.Lock()  # two blocks that serve the same port run one after the other


def run_block(folder, name, exact):
    """The block's process has ended well: the case, the process, and the facts that its check returned."""
    case = table.CASES[name]
    with _port if case.port else contextlib.nullcontext():
        return case, *_run(folder, name, case, exact)


def _run(folder, name, case, exact):
    python = python_with(case.needs)
    if case.port and port_is_taken(case.port):
        pytest.skip(f"port {case.port}, which the example names, is taken on this machine")
    program = [python, HERE / "run_block.py", name, "exact"]  # not under the recorder the probe attaches by itself
    # A server has no display; the documents say themselves what to set there.
    popen = dict(cwd=folder, timeout=BLOCK_S, env=dict(os.environ, MPLBACKEND="Agg"))
    recording = folder / "recording"
    runs = nested if python == sys.executable else harness
    done = runs.record(recording, program, **popen) if exact else runs.execute(program, **popen)
    *_, facts = done.ok().stdout.decode().splitlines()
    return done, json.loads(facts)


def python_with(module):
    """An interpreter that has it: this one, or that of the environment which scripts/test-integrations makes."""
    if not module or importlib.util.find_spec(module) is not None:
        return sys.executable
    python = documents.ROOT / "build" / "venvs" / "integrations" / "bin" / "python"
    if not python.exists() or not harness.has(python, module):
        pytest.skip(f"needs {module}: scripts/test-integrations installs it")
    return python


def port_is_taken(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def started(request, tmp_path_factory):
    """started(name, how): that block's run. They wait for sleeps and imports most of the time, so some run at once."""
    items = [i.callspec.params for i in request.session.items if i.path == Path(__file__) and hasattr(i, "callspec")]
    wanted = [(params["name"], params["how"]) for params in items if "name" in params]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        runs = {
            (name, how): pool.submit(run_block, tmp_path_factory.mktemp("block"), name, how == "run")
            for name, how in wanted
        }
        yield lambda name, how: runs[name, how].result()
        pool.shutdown(cancel_futures=True)


# Each of these is a process that imports PyTorch. By default every block of the guide and of the class page runs under
# the recorder, where its figures are exact, and a few without it; of the practices, those of which advice is given.
# All of them run with `make test-all`.
RECORDED = {"practice-optimizer-zero-grad", "practice-gradient-checkpointing", "practice-gradient-accumulation"}
PLAIN = {"guide-142", "guide-482", "guide-736", "class-page-function", "class-page-error", "class-page-tensors"}


def is_slow(name, case, how):
    if how == "plain":
        return name not in PLAIN
    return case.is_practice and name not in RECORDED


RUNS = [
    pytest.param(name, how, marks=[pytest.mark.slow] if is_slow(name, case, how) else [])
    for name, case in table.CASES.items()
    for how in ("run", "plain")
]


@pytest.mark.parametrize(("name", "how"), RUNS)
def test_runs_as_written_with_true_figures(started, name, how):
    case, done, facts = started(name, how)
    if how == "plain" or GPU:
        return
    if case.recorded is not None:
        size_bytes, count = case.recorded
        assert len(harness.by_size(harness.events(done.folder))[size_bytes]) == count
    if "peak_bytes" in facts:
        # The block's profiler was there before its first tensor, so its peak is that of the whole recording.
        (device,) = harness.analysis(done.folder)["devices"]
        assert device["peak_allocated"]["allocated_bytes"] == facts["peak_bytes"]


def test_every_python_block_of_the_guide_is_in_the_table():
    """None was forgotten: 28 that run, four for TensorFlow, and one that is no code."""
    blocks = set(documents.guide_blocks("python"))
    run_here = {case.key for case in table.CASES.values() if isinstance(case.key, int)}
    assert run_here | table.TENSORFLOW | table.NO_CODE == blocks
    assert (len(run_here), len(table.TENSORFLOW), len(table.NO_CODE)) == (28, 4, 1)
    for line in table.TENSORFLOW:
        text = documents.guide_blocks("python")[line].text
        assert "tf" in text or "tfmemprof" in text


def test_every_block_of_the_class_page_is_in_the_table():
    of_page = {c.key for c in table.CASES.values() if isinstance(c.key, str) and not c.is_practice}
    assert set(documents.class_page_blocks()) == of_page


def test_every_block_of_the_practices_is_in_the_table():
    assert set(documents.practice_blocks()) == set(table.PRACTICES)
