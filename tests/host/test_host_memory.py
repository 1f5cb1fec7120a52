"""The host's memory by class, of programs that hold known sizes of each, and the findings about it."""
import json
import os
import re
import subprocess
import uuid
from pathlib import Path

import harness
import pytest

MIB = 1 << 20
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")

# The parts are touched one after the other and kept while `run` samples at least twice.
HOLDS = """
import mmap, os, sys, time
anonymous = mmap.mmap(-1, 48 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
shared = mmap.mmap(-1, 40 << 20)  # MAP_SHARED
with open(sys.argv[1], "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    private = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
page = mmap.PAGESIZE
for part in (anonymous, shared):
    part[::page] = b"x" * (len(part) // page)
sum(mapped[::page])
written = int(sys.argv[2]) << 20
private[:written:page] = b"x" * (written // page)
time.sleep(float(sys.argv[3]))
"""
IDLE = """
import time
time.sleep(2.5)
"""


# A block, so that there is a recording.
FIRST = "from light import Block; block = Block(4096)"


@pytest.fixture
def held(record, light):
    """held(source, *arguments) -> folder: records a program that allocates one block first."""

    def run(source, *arguments):
        env = os.environ | light.env | {"PYTHONPATH": str(harness.PROGRAMS)}
        return record([harness.PYTHON, "-c", FIRST + source, *arguments], env=env).ok().folder

    return run


def host_of(recording):
    return harness.analysis(recording)["host_memory"]["runs"][0]


def findings(recording, kind):
    return [one for one in harness.analysis(recording)["findings"] if one["kind"] == kind]


# The kernel's counts of /proc/PID/status lag by up to 64 pages a CPU and class.
LAG = 64 * 4096 * (os.cpu_count() or 1)


def near(bytes_now, wanted, most=8 * MIB):
    return wanted - LAG <= bytes_now <= wanted + most


@pytest.fixture
def big_file(tmp_path):
    path = tmp_path / "weights.bin"
    path.write_bytes(os.urandom(MIB) * 96)
    return path


def test_each_class_has_what_the_program_holds_more_than_an_idle_one(held, big_file):
    idle = host_of(held(IDLE))["processes"][0]["highest"]
    full = host_of(held(HOLDS, big_file, 0, 2.5))["processes"][0]["highest"]
    assert near(full["anonymous_bytes"] - idle["anonymous_bytes"], 48 * MIB)
    assert near(full["shared_bytes"] - idle["shared_bytes"], 40 * MIB)
    assert near(full["file_bytes"] - idle["file_bytes"], 96 * MIB)
    terms = ("pinned_bytes", "other_shared_bytes", "file_bytes", "malloc_live_bytes", "malloc_kept_bytes", "python_arenas_bytes")
    assert full["resident_bytes"] == sum(full[term] or 0 for term in terms) + full["rest_bytes"]
    assert [term for term in terms if full[term] is None] == [term for term in terms if term in full["unknown"]]


def test_pages_written_to_in_a_private_mapping_are_copies(held, big_file):
    copies = held(HOLDS, big_file, 72, 2.5)
    (found,) = findings(copies, "weights_copied_privately")
    assert found["evidence"]["copied_file_bytes"] == 72 * MIB
    assert found["evidence"]["file"] == str(big_file)
    reads = held(HOLDS, big_file, 0, 2.5)
    assert not findings(reads, "weights_copied_privately")


FORKS = """
import gc, mmap, os, sys, time
held = mmap.mmap(-1, 128 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
page = mmap.PAGESIZE
held[::page] = b"x" * (len(held) // page)
workers = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        time.sleep(3)
        if sys.argv[1] == "writes":
            held[: 64 << 20 : page] = b"y" * ((64 << 20) // page)
        else:
            own = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            own[::page] = b"y" * (len(own) // page)
        time.sleep(3)
        os._exit(0)
    workers.append(pid)
for pid in workers:
    os.waitpid(pid, 0)
"""


def test_what_forked_workers_write_to_is_copied(held):
    writes = held(FORKS, "writes")
    (found,) = findings(writes, "fork_copy_on_write")
    # Of three that share 64 MiB each of the two makes a copy, and the parent has the old pages.
    assert near(found["bytes"], 2 * 64 * MIB - 2 * MIB, 6 * MIB), found
    assert found["evidence"]["workers"] == 2
    own = held(FORKS, "asks")
    assert not findings(own, "fork_copy_on_write")


def test_pages_that_processes_share_count_once_together(held):
    run = host_of(held(FORKS, "asks"))
    resident, once = run["highest_resident"], run["highest_proportional"]
    assert resident["processes"] == once["processes"] == 3
    assert 1 <= once["samples"] <= resident["samples"]
    # 128 MiB in each of three, of which two count once.
    assert near(resident["bytes"] - once["bytes"], 2 * 128 * MIB, 60 * MIB)


LEAVES = """
import os, sys
name = f"/dev/shm/torch_{os.getpid()}_{sys.argv[1]}_0"
with open(name, "wb") as file:
    file.write(b"x" * (3 << 20))
if sys.argv[2] == "removes":
    os.unlink(name)
"""


def test_files_left_in_dev_shm_are_named(held):
    token = uuid.uuid4().hex[:8]
    try:
        leaves = held(LEAVES, token, "leaves")
        (found,) = findings(leaves, "shm_left_behind")
        assert found["bytes"] >= 3 * MIB and token in found["title"]
        assert found["evidence"]["own_files"] == 1
    finally:
        for path in Path("/dev/shm").glob(f"torch_*_{token}_0"):
            path.unlink()
    removes = held(LEAVES, token, "removes")
    assert not [one for one in findings(removes, "shm_left_behind") if token in json.dumps(one)]


@pytest.fixture
def limited():
    """limited(bytes): a new cgroup with a limit, which the tests need the right to make."""
    old = (V1 / "memory.limit_in_bytes").exists()
    folder = (V1 if old else V2) / f"gpumemprof-host-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")

    def limit(size_bytes):
        try:
            (folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(size_bytes))
            if (folder / "memory.swap.max").exists():
                (folder / "memory.swap.max").write_text("0")
        except OSError as error:
            pytest.skip(f"a cgroup's memory cannot be limited here: {error}")
        return folder

    yield limit
    folder.rmdir()


def words_in(cgroup, folder, source, arguments):
    words = map(str, harness.run_argv(folder, [harness.PYTHON, "-c", FIRST + source, *arguments]))
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup), *words]


def record_in(cgroup, folder, light, source, *arguments):
    env = os.environ | light.env | {"PYTHONPATH": str(harness.PROGRAMS)}
    return subprocess.run(words_in(cgroup, folder, source, arguments), env=env, capture_output=True, timeout=300, check=False)


READS = """
import os, sys, time
with open(sys.argv[1], "rb") as file:
    while file.read(1 << 20):
        pass
time.sleep(2.5)
"""


def test_page_cache_against_the_limit_is_no_leak(tmp_path, light, limited):
    path = tmp_path / "data.bin"
    with path.open("wb") as file:
        for _ in range(256):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # else its pages are charged to us
    done = record_in(limited(128 * MIB), tmp_path / "r", light, READS, path)
    assert done.returncode == 0, done.stderr
    (found,) = findings(tmp_path / "r", "page_cache_is_not_a_leak")
    evidence = found["evidence"]
    assert evidence["limit_bytes"] == 128 * MIB
    assert evidence["reclaimable_bytes"] + evidence["working_set_bytes"] == evidence["cgroup_used_bytes"]
    assert evidence["reclaimable_bytes"] >= 64 * MIB
    at = host_of(tmp_path / "r")["cgroup_highest"]
    assert at["used_bytes"] == at["anonymous_bytes"] + at["file_bytes"] + at["shared_bytes"] + at["kernel_bytes"] + at["rest_bytes"]


FILLS = """
import mmap, os, sys, time
time.sleep(1.5)
page, kept = mmap.PAGESIZE, []
step, most = 4 << 20, int(sys.argv[1]) << 20
for _ in range(most // step):
    kept.append(mmap.mmap(-1, step, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    kept[-1][::page] = b"x" * (step // page)
    time.sleep(0.05)
time.sleep(float(sys.argv[2]))
"""


def test_anonymous_memory_below_the_limit_is_neither(tmp_path, light, limited):
    done = record_in(limited(256 * MIB), tmp_path / "r", light, FILLS, 180, 1.5)
    assert done.returncode == 0, done.stderr
    assert not findings(tmp_path / "r", "page_cache_is_not_a_leak")
    assert not findings(tmp_path / "r", "killed_by_the_kernel")


def test_who_was_largest_is_told_where_the_kernel_killed(tmp_path, light, limited):
    done = record_in(limited(256 * MIB), tmp_path / "r", light, FILLS, 400, 1.5)
    assert done.returncode == -9, done.stderr
    (found,) = findings(tmp_path / "r", "killed_by_the_kernel")
    evidence = found["evidence"]
    assert (found["severity"], evidence["kills"], evidence["limit_bytes"]) == ("critical", 1, 256 * MIB)
    meta = json.loads((tmp_path / "r" / "meta.json").read_text())
    assert evidence["largest_pid"] == meta["pid"]
    # One sample a second, 80 MiB a second.
    assert 256 * MIB - 110 * MIB <= evidence["largest_anonymous_bytes"] <= 256 * MIB
    assert "mostly anonymous memory" in found["title"]


def test_a_recorder_that_was_killed_too_is_told_from_its_samples(tmp_path, light, limited):
    cgroup = limited(256 * MIB)
    env = os.environ | light.env | {"PYTHONPATH": str(harness.PROGRAMS)}
    words = words_in(cgroup, tmp_path / "r", FILLS, (236, 60))
    with subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        harness.until(lambda: list((tmp_path / "r").glob("*.gms")))
        limit_file = next(f for f in ("memory.usage_in_bytes", "memory.current") if (cgroup / f).exists())
        harness.until(lambda: int((cgroup / limit_file).read_text()) > 244 * MIB)
        harness.until(lambda: False, seconds=2.5)  # for a sample of it
        os.killpg(process.pid, 9)
        process.wait()
    harness.until(lambda: not (cgroup / "cgroup.procs").read_text().split())
    (samples,) = (tmp_path / "r").glob("*.gms")
    assert not findings(tmp_path / "r", "killed_by_the_kernel"), "it may still run"
    then = samples.stat().st_mtime - 3600
    os.utime(samples, (then, then))
    (found,) = findings(tmp_path / "r", "killed_by_the_kernel")
    assert "the recorder and the program were killed" in found["title"]
    assert found["confidence"] < 1


RETAINS = """
import ctypes, sys
import torch
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
size, blocks = 60_000, []
def looks():  # for which a look is taken, after numbers of these
    for _ in range(20_000):
        torch.empty(1000)
looks()
for _ in range((192 << 20) // size):
    blocks.append(libc.malloc(size))
    ctypes.memset(blocks[-1], 1, size)
last = libc.malloc(1000)  # after them in the heap: nothing before it is given back
if sys.argv[1] != "keeps":
    for block in blocks:
        libc.free(block)
if sys.argv[1] == "trims":
    libc.malloc_trim(0)
looks(), looks(), looks(), looks(), looks(), looks()
"""


def test_free_memory_that_malloc_keeps_is_told(record):
    frees = record([harness.PYTHON, "-c", RETAINS, "frees"], ["--explain-leaks"]).ok().folder
    (found,) = findings(frees, "malloc_retention")
    # 3,355 chunks of 60,016 bytes, less what was asked for again between the two looks.
    assert 0.9 * 3355 * 60_016 <= found["bytes"] <= 3355 * 60_016 + 64 * MIB
    for way in ("trims", "keeps"):
        other = record([harness.PYTHON, "-c", RETAINS, way], ["--explain-leaks"]).ok().folder
        said = host_of(other)["processes"][0]["said"]
        assert said and not findings(other, "malloc_retention"), (way, said)


COMPILES = """
import subprocess, sys, time
workers = [subprocess.Popen([sys.executable, sys.argv[1]]) for _ in range(2)]
for worker in workers:
    worker.wait()
"""
WORKS = """
import mmap, time
held = mmap.mmap(-1, 80 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held[::4096] = b"x" * (len(held) // 4096)
time.sleep(3)
"""


def test_processes_that_compile_are_added_up(held, tmp_path):
    for name in ("compile_worker", "other_worker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__main__.py").write_text(WORKS)
    done = held(COMPILES, tmp_path / "compile_worker" / "__main__.py")
    (found,) = findings(done, "compile_workers")
    assert found["evidence"]["processes"] == 2
    assert near(found["evidence"]["resident_bytes"], 160 * MIB, 80 * MIB)
    assert not findings(held(COMPILES, tmp_path / "other_worker" / "__main__.py"), "compile_workers")


SAVES = """
import sys
import torch
from torch.distributed._state_dict_utils import _create_cpu_state_dict
state = {str(i): torch.ones(1 << 22) for i in range(8)}
if sys.argv[1] == "stages":
    staged = _create_cpu_state_dict(state)
else:
    own = {name: value.clone() for name, value in state.items()}
"""


def test_copies_made_by_saving_are_told(record):
    stages = record([harness.PYTHON, "-c", SAVES, "stages"]).ok().folder
    (found,) = findings(stages, "checkpoint_staging")
    assert found["evidence"]["staged_bytes"] == 8 * (4 << 22)
    assert not findings(record([harness.PYTHON, "-c", SAVES, "clones"]).ok().folder, "checkpoint_staging")


OBJECTS = """
import os, re, sys, tempfile
import torch
block = torch.empty(1000)
held = [[i] for i in range(int(sys.argv[1]))]  # until the last look, as the program ends
kept = os.dup(2)
with tempfile.TemporaryFile() as file:
    os.dup2(file.fileno(), 2)
    sys._debugmallocstats()
    os.dup2(kept, 2)
    file.seek(0)
    print(*re.search("([0-9]+) arenas . ([0-9]+) bytes/arena", file.read().decode()).groups())
"""


def test_pythons_arenas_are_a_term_of_the_sum(record):
    done = record([harness.PYTHON, "-c", OBJECTS, "1000000"], ["--explain-leaks"]).ok()
    arenas, size_bytes = map(int, done.stdout.split())
    assert arenas * size_bytes > 100 * MIB
    said = host_of(done.folder)["processes"][0]["said"][-1]
    # What the look itself and the table's text took, and the stacks of frames.
    assert abs(said["python_arenas_bytes"] - arenas * size_bytes) <= 8 * MIB
    terms = ("pinned_bytes", "other_shared_bytes", "file_bytes", "malloc_live_bytes", "malloc_kept_bytes", "python_arenas_bytes")
    assert None not in [said[term] for term in terms]
    assert said["resident_bytes"] == sum(said[term] for term in terms) + said["rest_bytes"]
    assert abs(said["rest_bytes"]) <= said["resident_bytes"] // 10, said
    text = harness.execute([harness.COMMAND, "analyze", done.folder]).ok().stdout.decode()
    assert re.search(r"^ +Python's arenas +[0-9.]+ MiB$", text, re.M), text
