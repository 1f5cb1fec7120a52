"""The programs of the pages of troubles: what is said of each is what its page shows, but for the figures."""

import os
import re
import sys

import harness
import pytest
from pages import blocks, shape
from troubles.judge import Judge, Missing, cgroup, own_shm

pytest.importorskip("torch")

# By page: options of `run`, the cgroup's limit in MiB, the exit code.
PAGES = {
    "checkpoint-staging": ([], None, 0),
    "compile-workers": ([], None, 0),
    "dev-shm-left-behind": ([], None, 0),
    "fork-copy-on-write": ([], None, 0),
    "killed-137-oomkilled": ([], 600, -9),
    "malloc-retention": (["--explain-leaks"], None, 0),
    "mapped-weights-are-copied": ([], None, 0),
    "out-of-memory-loading-weights": ([], None, 0),
    "page-cache-is-not-a-leak": ([], 400, 0),
}
QUICK = ("checkpoint-staging", "out-of-memory-loading-weights")
NCCL = "docs/problems/nccl-gpu-memory.md"
MIB = 1 << 20
# What three communicators do, by a stand-in for the driver; the callers are libraries of NCCL's and PyTorch's names.
THREE_COMMUNICATORS = f"""
from driver_calls import library
runtime, nccl, torch = library("libcudart.so.12"), library("libnccl.so.2", 0), library("libc10_cuda.so", 0)
runtime.begin()
torch.malloc({600 * MIB})
for _ in range(3):
    nccl.malloc({180 * MIB})
    nccl.make("cuMemHostAlloc", {9 * MIB}, 0)
"""
SEVERITIES = ("critical", "warning", "info")


def file_of(page):
    """The one file that a page shows whole."""
    (block,) = (one for one in blocks(page) if one.language in ("py", "python") and "title" in one.note)
    return block.note.split('"')[1], block.text


@pytest.mark.parametrize("page", [pytest.param(page, marks=() if page in QUICK else pytest.mark.slow) for page in PAGES])
def test_the_program_of_a_page_is_told_as_the_page_shows(page, tmp_path):
    options, limit_mib, code = PAGES[page]
    name, program = file_of(f"docs/problems/{page}.md")
    (shown,) = (one.text for one in blocks(f"docs/problems/{page}.md") if one.note.startswith('title="gpumemprof analyze '))
    (tmp_path / name).write_text(program)
    argv = harness.run_argv(tmp_path / "run", ["python", name], ["-q", *options])
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])  # of the `python` that a page starts
    try:
        with cgroup(limit_mib) as group:
            if group:
                argv = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *argv]
            done = harness.execute([*own_shm(), *argv], cwd=tmp_path, timeout=120, env={**os.environ, "PATH": path})
    except Missing as missing:
        pytest.skip(str(missing))
    assert done.rc == (code if code >= 0 else 128 - code), done.stderr[-600:].decode()
    told = harness.execute([harness.COMMAND, "analyze", "run"], cwd=tmp_path).ok().stdout.decode()
    lines = [shape(line) for line in told.splitlines()]
    for line in shown.splitlines():
        assert shape(line) in lines, told[:3000]
    found = [(SEVERITIES.index(one["severity"]), -(one["bytes"] or 0)) for one in harness.analysis(tmp_path / "run")["findings"]]
    assert found == sorted(found), "the worst first"


def test_nccls_memory_is_told_as_its_page_shows(tmp_path):
    judge = Judge(tmp_path / "made")
    try:
        environment = judge.environment | judge.driver(tmp_path)
    except Missing as missing:
        pytest.skip(str(missing))
    (tmp_path / "three.py").write_text(THREE_COMMUNICATORS)
    words = harness.run_argv(tmp_path / "run", [sys.executable, "three.py", judge.callers], ["-q"])
    harness.execute(words, cwd=tmp_path, env=environment).ok()
    (shown,) = (one.text for one in blocks(NCCL) if one.note.startswith('title="gpumemprof analyze '))
    assert shown in harness.execute([harness.COMMAND, "analyze", tmp_path / "run"]).ok().stdout.decode()


def test_the_program_of_nccls_page_runs_with_gloo(tmp_path):
    name, program = file_of(NCCL)
    (tmp_path / name).write_text(program)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", name]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    harness.execute(harness.run_argv(tmp_path / "run", torchrun, ["-q"]), cwd=tmp_path, env=environment, timeout=120).ok()
    found = harness.analysis(tmp_path / "run")
    assert len(found["ranks"]["ranks"]) == 3
