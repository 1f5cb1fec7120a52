"""Every process that allocates has a file of its own with exactly its own allocations, however it came and went."""
import collections
import json
import os
import shutil
import subprocess
import sys

import pytest

import harness

PROGRAM = harness.PROGRAMS / "processes.py"


def logged(path):
    """{pid: sizes} as the processes wrote it themselves."""
    result = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        result[entry["pid"]] += entry["sizes"]
    return dict(result)


def check(folder, log, smallest=10_000):
    expected, found = logged(log), collections.defaultdict(list)
    for event in harness.allocs(harness.events(folder)):
        if event["size_bytes"] >= smallest:
            found[harness.pid_of(event)].append(event["size_bytes"])
    assert {pid: sorted(s) for pid, s in found.items()} == {pid: sorted(s) for pid, s in expected.items()}
    return expected


FORKS = ["fork_exit", "fork_underscore_exit", "fork_killed", "fork_before_anything", "fork_of_fork", "fork_and_both_go_on",
         "fork_many", "fork_from_a_thread", "double_fork", "subprocesses"]
METHODS = ["multiprocessing:fork", "multiprocessing:spawn", "multiprocessing:forkserver"]


@pytest.mark.parametrize("mode", FORKS + METHODS)
def test_every_process_has_its_own_file_with_its_own_allocations(record, light, tmp_path, mode):
    log = tmp_path / "log"
    done = record([harness.PYTHON, PROGRAM, log, mode], env=light.env).ok()
    expected = check(done.folder, log)
    for pid in expected:
        assert len(list(done.folder.glob(f"*.{pid}.*.gmp"))) == 1, (pid, harness.files(done.folder))


@pytest.mark.parametrize("mode, least, most", [("fork_exit", 2, 2), ("fork_underscore_exit", 2, 2), ("fork_killed", 1, 1),
                                               ("multiprocessing:fork", 5, 7)])  # its pool ends two by SIGTERM
def test_a_process_that_leaves_with_exit_or_underscore_exit_has_left_cleanly(record, light, tmp_path, mode, least, most):
    done = record([harness.PYTHON, PROGRAM, tmp_path / "log", mode], env=light.env).ok()
    ends = [p["exited_cleanly"] for p in harness.analysis(done.folder)["processes"]]
    assert least <= sum(ends) <= most and len(ends) == (7 if most == 7 else 2), ends


def test_a_child_of_vfork_that_leaves_is_not_its_parent(record, light, tmp_path):
    """What cannot be executed leaves with _exit(), in its parent's memory."""
    done = record([harness.PYTHON, PROGRAM, tmp_path / "log", "vfork_and_killed"], env=light.env)
    assert done.rc == 128 + 9
    assert [p["exited_cleanly"] for p in harness.analysis(done.folder)["processes"]] == [False]


def test_a_program_that_execs_itself_is_recorded_before_and_after(record, light, tmp_path):
    log = tmp_path / "log"
    done = record([harness.PYTHON, PROGRAM, log, "execv"], env=light.env).ok()
    ((pid, sizes),) = check(done.folder, log).items()
    assert len(sizes) == 60
    assert len(list(done.folder.glob(f"*.{pid}.*.gmp"))) == 2


def test_a_pid_that_comes_again_gets_another_file(record, light, tmp_path):
    log = tmp_path / "log"
    done = record([harness.PYTHON, PROGRAM, log, "same_pid_again"], env=light.env).ok()
    if done.stdout != b"same pid\n":
        pytest.skip("the kernel does not let this user choose a PID")
    ((pid, sizes),) = check(done.folder, log).items()
    assert len(sizes) == 60
    assert len(list(done.folder.glob(f"*.{pid}.*.gmp"))) == 2


@pytest.mark.parametrize("launcher", [
    ["sh", "-c", "{} {} {} other:0"],
    ["sh", "-c", "cd / && {} {} {} other:0; true"],
    ["sh", "-c", "({} {} {} other:0 &) ; sleep 0.6"],
    ["env", "NAME=value", "{}", "{}", "{}", "other:0"],
    ["timeout", "60", "{}", "{}", "{}", "other:0"],
    ["nice", "-n", "1", "setsid", "-w", "{}", "{}", "{}", "other:0"],
    ["bash", "-c", "exec sh -c 'env timeout 60 {} {} {} other:0'"],
    ["xargs", "-n", "1", "-a", "/dev/null", "{}", "{}", "{}", "other:0"],
])
def test_launchers(record, light, tmp_path, launcher):
    log = tmp_path / "log"
    names = iter([harness.PYTHON, PROGRAM, log])
    argv = [part if "{" not in part else part.format(*[str(next(names)) for _ in range(part.count("{}"))])
            for part in launcher]
    done = record(argv, env=light.env).ok()
    assert len(check(done.folder, log)) == 1


def test_data_loader_workers(record, tmp_path):
    log = tmp_path / "log"
    done = record([harness.PYTHON, harness.PROGRAMS / "loader.py", log]).ok()
    expected, sizes = logged(log), harness.by_size(harness.events(done.folder))
    assert len(expected) == 6, "two workers, three epochs"
    for pid, own in expected.items():
        for size in own:
            assert pid in [harness.pid_of(e) for e in sizes[size] if e["device"] == "cpu"], size
            (shared,) = {harness.pid_of(e) for e in sizes[size] if e["device"] == "shared memory"} & {pid}
            (frame, *_) = [harness.frames(e)[0] for e in sizes[size] if e["device"] == "cpu" and harness.pid_of(e) == pid]
            assert frame.function == "Sizes.__getitem__"


def test_ranks_of_a_launcher(record, tmp_path):
    log = tmp_path / "log"
    done = record([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                   harness.PROGRAMS / "rank.py", log]).ok()
    assert len(check(done.folder, log, 200_000)) == 2


def test_a_process_that_lost_the_recorder_is_named(record, light, tmp_path):
    """`env -i` takes the preloaded library away: never a silent gap."""
    code = (f"import sys, time; sys.path.insert(0, {str(harness.PROGRAMS)!r}); from light import Block\n"
            "kept = [Block(1000) for _ in range(100)]; time.sleep(1.5); print(len(kept))")
    done = record(["env", "-i", f"ALLOCATE_LIBRARY={light.library}", harness.PYTHON, "-c", code]).ok()
    assert done.stdout == b"100\n"
    said = done.stderr.decode()
    assert "LD_PRELOAD" in said and "recorded" in said, said


LATE = """import json, os, signal, sys, time
import light
run, folder = os.getppid(), sys.argv[1]
if os.fork() == 0:
    while "exit" not in json.load(open(os.path.join(folder, "meta.json"))):
        pass
    os.kill(run, signal.SIGSTOP)  # it seals the parent's file
    kept = [light.Block(20_000 + i) for i in range(100)]
    os.kill(run, signal.SIGCONT)
    time.sleep(1)  # `run` has let go of everything by now
    kept += [light.Block(30_000 + i) for i in range(100)]
    os._exit(0)
for i in range(50_000):
    light.Block(100)
"""


def test_a_process_that_begins_while_run_seals_is_kept_to_its_end(light, tmp_path):
    folder, program = tmp_path / "recording", tmp_path / "late.py"
    program.write_text(LATE)
    env = dict(light.env, PYTHONPATH=str(harness.PROGRAMS))
    harness.record(folder, [harness.PYTHON, program, folder], env=env).ok()

    def sizes():
        return sorted(e["size_bytes"] for e in harness.allocs(harness.events(folder, may_lack_some=True)) if e["size_bytes"] > 10_000)

    expected = [*range(20_000, 20_100), *range(30_000, 30_100)]
    assert harness.until(lambda: sizes() == expected), len(sizes())
    assert harness.until(lambda: not harness.analysis(folder)["lost"]["reasons"]), harness.analysis(folder)["lost"]


CUT_IN_TWO = """
import pathlib, sys, time
import torch, gpumemprof
gpumemprof.attach(sys.argv[1])
here = pathlib.Path(sys.argv[2])
kept = [torch.empty(20_000 + i, dtype=torch.uint8) for i in range(50)]
(here / "half").touch()
while not (here / "go").exists():
    time.sleep(0.02)
kept += [torch.empty(30_000 + i, dtype=torch.uint8) for i in range(50)]
"""


IN_NAMESPACES = {
    "time": (["--time", "--boottime", "100000"], []),
    "PID": (["--pid", "--mount-proc"], []),
    "PID, as is whoever seals": (["--pid", "--mount-proc"], ["unshare", "--pid", "--mount-proc", "--fork"]),
}


@pytest.mark.parametrize("kind", IN_NAMESPACES)
def test_an_idle_process_in_another_namespace_is_not_taken_for_one_that_ended(tmp_path, kind):
    """Its number or its start is another one here, and nobody has written to its file for a while."""
    options, seals_in = IN_NAMESPACES[kind]
    elsewhere = ["unshare", *options, "--fork"]
    if not shutil.which("unshare") or subprocess.run([*elsewhere, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"needs namespaces (unshare {options[0]})")
    pytest.importorskip("torch")
    folder = tmp_path / "recording"
    program = subprocess.Popen([*elsewhere, harness.PYTHON, "-c", CUT_IN_TWO, folder, tmp_path])
    assert harness.until((tmp_path / "half").exists)
    for file in folder.glob("*.gmp"):
        os.utime(file, (1e9, 1e9))
    harness.execute([*seals_in, harness.COMMAND, "seal", folder])
    (tmp_path / "go").touch()
    assert program.wait() == 0
    sizes = sorted(e["size_bytes"] for e in harness.allocs(harness.events(folder)) if e["size_bytes"] > 10_000)
    assert sizes == [*range(20_000, 20_050), *range(30_000, 30_050)]
