"""kill -9 of the program, of its `run` parent, or of both, at any moment: what the program had seen is in the record."""
import contextlib
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness

PROGRAM = harness.PROGRAMS / "count.py"
LIMIT = 60_000


class Counting:
    """count.py under `run`, with the numbers that it has printed so far in a file."""

    def __init__(self, folder, light, allocator, threads, limit=LIMIT):
        folder.mkdir()
        self.recording, self.output, self.threads = folder / "recording", folder / "printed", threads
        argv = [harness.PYTHON, PROGRAM, allocator, limit, threads]
        with open(self.output, "ab") as output, open(folder / "stderr", "wb") as errors:
            self.run = subprocess.Popen(harness.run_argv(self.recording, argv), stdin=subprocess.DEVNULL,
                                        stdout=output, stderr=errors, env=light.env, start_new_session=True)
        self.pid = self._wait_for_first_number()

    def _wait_for_first_number(self):
        ended = False
        while not ended:
            ended = self.run.poll() is not None  # asked before the read: on a busy machine it may have counted to its end
            lines = self.output.read_bytes().split(b"\n")
            if len(lines) > 2:
                return int(lines[0])
            time.sleep(0.002)
        raise AssertionError(f"ended too early: {self.run.returncode}")

    def kill(self, *pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it may have come to its own end
                os.kill(pid, signal.SIGKILL)

    def wait_for_program(self):
        """The program may be nobody's child any more, so its end shows in /proc."""
        for _ in range(60_000):
            try:
                with open(f"/proc/{self.pid}/stat") as stat:
                    if stat.read().rsplit(")")[1].split()[0] == "Z":
                        return
            except OSError:
                return
            time.sleep(0.001)
        raise AssertionError("the program does not end")

    def printed(self):
        lines = self.output.read_bytes().split(b"\n")[1:-1]  # after the PID, and without a torn last line
        return [int(n) for n in lines]

    def goes_on(self, before):
        """True once more than `before` numbers are printed, or all of them; a busy machine may take its time."""
        end = time.monotonic() + 30
        while before < LIMIT and len(self.printed()) <= before and time.monotonic() < end:
            time.sleep(0.01)
        return before == LIMIT or len(self.printed()) > before

    def check(self):
        """Every printed number is there once, with its line; at most one more a thread was not printed any more."""
        printed = set(self.printed())
        analysis = harness.analysis(self.recording)  # reads what nobody has sealed
        events = harness.events(self.recording)
        counted = [e for e in harness.allocs(events) if e["size_bytes"] >= 4096 and "count" in str(e.get("stack"))]
        found = [e["size_bytes"] - 4096 for e in counted]
        missing = sorted(printed - set(found))
        assert not missing, f"{len(missing)} of {len(printed)} printed numbers are missing, the first: {missing[:5]}"
        assert len(found) == len(set(found))
        assert len(set(found) - printed) <= self.threads
        assert sum(d["events"]["alloc"] for d in analysis["devices"]) == len(harness.allocs(events))
        functions = {tuple(f.function for f in harness.frames(e) if f.function.startswith(("count", "<module>"))) for e in counted}
        assert functions <= {("count", "<module>"), ("count",)}, functions
        return len(printed)


def kill_once(folder, light, allocator, threads, who, delay_s):
    counting = Counting(folder, light, allocator, threads)
    time.sleep(delay_s)
    if who == "both":
        pids = [counting.run.pid, counting.pid]
        random.shuffle(pids)
        counting.kill(*pids)
        counting.run.wait(30)
    elif who == "program":
        counting.kill(counting.pid)
        code = counting.run.wait(60)  # a program that was faster than the kill has counted to its end
        assert code in (128 + 9, -9) or (code == 0 and len(counting.printed()) == LIMIT), code
    else:
        counting.kill(counting.run.pid)
        counting.run.wait(30)
        before = len(counting.printed())
        assert counting.goes_on(before), "the program did not go on without its parent"
        counting.kill(counting.pid)
    counting.wait_for_program()
    return counting.check()


def kill_many(tmp_path, light, allocator, times, whos=("both",), longest_s=0.08):
    """Two at a time; the numbers of events before the kill differ from a handful to many buffers' worth."""
    random.seed(os.environ.get("GPUMEMPROF_SEED", "7"))
    jobs = [(tmp_path / str(i), light, allocator, 1 + i % 2, whos[i % len(whos)], random.random() ** 2 * longest_s)
            for i in range(times)]
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda job: kill_once(*job), jobs))
    assert times < 20 or max(counts) > 2 * min(counts), counts


def test_killed_together_with_the_parent(tmp_path, light):
    kill_many(tmp_path, light, "light", 20)


def test_program_killed(tmp_path, light):
    kill_many(tmp_path, light, "light", 4, ["program"])


def test_parent_killed(tmp_path, light):
    kill_many(tmp_path, light, "light", 4, ["parent"])


def test_killed_with_pytorch(tmp_path, light):
    kill_many(tmp_path, light, "torch", 2, longest_s=0.4)


def test_a_program_outlives_its_parent_and_ends_by_itself(tmp_path, light):
    counting = Counting(tmp_path / "alone", light, "light", 1, limit=20_000)
    counting.kill(counting.run.pid)
    counting.run.wait(30)
    counting.wait_for_program()
    assert len(counting.printed()) == 20_000
    assert counting.check() == 20_000


@pytest.mark.slow
def test_killed_together_with_the_parent_a_hundred_times(tmp_path, light):
    kill_many(tmp_path, light, "light", 100, longest_s=0.3)


@pytest.mark.slow
def test_killed_with_pytorch_a_hundred_times(tmp_path, light):
    kill_many(tmp_path, light, "torch", 100, longest_s=0.4)


@pytest.mark.slow
def test_killed_one_by_one_many_times(tmp_path, light):
    kill_many(tmp_path, light, "light", 60, ["program", "parent"], longest_s=0.3)
