"""What writes a file anew leaves a pipe or a device what it is: `-o /dev/null` as root must not make a file of it."""

import json
import os
import stat
import subprocess
import sys

import harness
import pytest

WRITERS = {
    "telemetry": "from gpumemprof.telemetry import write_events; write_events(sys.argv[1], [], 'json')",
    "results": "from gpumemprof import MemoryProfiler; MemoryProfiler().save_results(sys.argv[1])",
}


@pytest.fixture
def pipe(tmp_path):
    """A pipe that somebody reads, so that writing does not wait."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, reader
    os.close(reader)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_gets_what_a_file_would(pipe, writer):
    path, reader = pipe
    subprocess.run([sys.executable, "-c", f"import sys; {WRITERS[writer]}", path], check=True, timeout=60)
    assert stat.S_ISFIFO(path.stat().st_mode) and os.listdir(path.parent) == ["pipe"]
    json.loads(os.read(reader, 1 << 16))


def test_sqlite_refuses_it(pipe):
    pytest.importorskip("duckdb")
    snapshot = harness.ROOT / "tests" / "fixtures" / "allocator" / "max_split_2.13.pickle"
    done = harness.execute([harness.COMMAND, "export", snapshot, "--to", "sqlite", "-o", pipe[0]])
    assert done.rc == 2 and f"{pipe[0]}: is no regular file" in done.stderr.decode()
    assert stat.S_ISFIFO(pipe[0].stat().st_mode) and os.listdir(pipe[0].parent) == ["pipe"]
