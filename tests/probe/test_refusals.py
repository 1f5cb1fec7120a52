"""Where the system refuses what the probe would like to do, it records another way or counts what is lost."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
GPUMEMPROF = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv/bin/gpumemprof"))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    out = tmp_path_factory.mktemp("refusals")
    subprocess.run(["g++", "-O1", "-fPIC", "-shared", str(HERE / "fake_c10.cc"), "-o", str(out / "libc10.so")],
                   check=True)
    subprocess.run(["g++", "-O1", str(HERE / "alloc_many.cc"), "-o", str(out / "many"),
                    f"-L{out}", "-lc10", f"-Wl,-rpath,{out}"], check=True)
    return str(out / "many")


def record(folder, *command):
    run = subprocess.run([GPUMEMPROF, "run", "-o", str(folder), "--", *command],
                         capture_output=True, text=True)
    jsonl = subprocess.run([GPUMEMPROF, "export", str(folder), "--to", "jsonl"],
                           capture_output=True, text=True).stdout
    return run, [json.loads(line)["size_bytes"] for line in jsonl.splitlines()]


@pytest.mark.parametrize("what", ["fallocate", "shared-mmap", "both"])
def test_every_event_is_recorded_where_a_call_is_refused(program, tmp_path, what):
    count = 12000  # more than two turns of the buffer
    run, sizes = record(tmp_path / "r", sys.executable, str(HERE / "refuse.py"), what, program, str(count))
    assert (run.returncode, run.stdout) == (7, "done\n")
    assert sorted(sizes) == [1000 + i for i in range(count)]


def test_a_full_disk_keeps_what_was_written_and_counts_the_rest(program, tmp_path):
    """--max-disk is refused by our own count; the file system's refusal is in tests/safety."""
    count = 20000
    run, sizes = record(tmp_path / "r", sys.executable, "-c",
                        "import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)); "
                        "os.execv(sys.argv[1], sys.argv[1:])", program, str(count))
    assert (run.returncode, run.stdout) == (7, "done\n")
    assert 5458 <= len(sizes) < count
    assert sorted(sizes) == [1000 + i for i in range(len(sizes))]
    analysis = json.loads(subprocess.run([GPUMEMPROF, "analyze", str(tmp_path / "r"), "--format", "json"],
                                         capture_output=True, check=True).stdout)
    assert analysis["lost"]["events"] == count - len(sizes)
    assert f"{count - len(sizes):,} events" in run.stderr
