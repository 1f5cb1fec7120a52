"""A program that its cgroup's limit killed: nothing is lost, and every command says who killed it."""
import os
import subprocess
import uuid
from pathlib import Path

import harness
import pytest

LIMIT = 256 << 20
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")

GROWS = """
import ctypes
from light import Block
kept = []
while True:
    kept.append(Block(1 << 20))
    ctypes.memset(kept[-1].address, 1, 1 << 20)
    print(len(kept), flush=True)
"""


@pytest.fixture
def cgroup():
    """A new cgroup with a limit; the tests need the right to make one."""
    old = (V1 / "memory.limit_in_bytes").exists()
    folder = (V1 if old else V2) / f"gpumemprof-test-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        try:
            (folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(LIMIT))
            for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
                if (folder / swap).exists():
                    (folder / swap).write_text(str(LIMIT if old else 0))
        except OSError as error:
            pytest.skip(f"a cgroup's memory cannot be limited here: {error}")
        yield folder
    finally:
        folder.rmdir()


def test_the_kernels_kill_is_told_and_nothing_is_lost(tmp_path, light, cgroup):
    recording = tmp_path / "r"
    env = os.environ | light.env | {"PYTHONPATH": str(harness.PROGRAMS)}
    words = [harness.COMMAND, "run", "-o", recording, "--", harness.PYTHON, "-c", GROWS]
    done = subprocess.run(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup), *map(str, words)],
                          capture_output=True, env=env, timeout=300, check=False)  # fmt: skip
    assert done.returncode == -9, done.stderr
    blocks = int(done.stdout.split()[-1])
    said = f"The kernel's OOM killer ended the program: its cgroup's limit is {LIMIT >> 20} MiB."
    assert done.stderr.decode().split("gpumemprof: ", 1)[1].splitlines()[0] == said
    analysis = harness.analysis(recording)
    run = analysis["end"]["runs"][0]
    assert (run["signal"], run["kernel_kills"], run["kernel_kills_of"]) == ("SIGKILL", 1, "cgroup")
    assert run["memory_limit_bytes"] == LIMIT
    assert analysis["end"]["failure"] == "the kernel's OOM killer ended the program"
    # The last block may have been recorded and not printed.
    assert analysis["devices"][0]["peak"]["allocated_bytes"] in (blocks << 20, (blocks + 1) << 20)
    for words in (["analyze", recording], ["advise", recording]):
        assert harness.execute([harness.COMMAND, *words]).ok().stdout.decode().splitlines()[0] == said
