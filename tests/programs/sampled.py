"""rest(seconds): sleeps so long, and under `gpumemprof run` until it has looked for processes, walked through the pages of all of
them and written that down, however busy the machine is. RECORDING is the folder of the recording."""
import glob
import os
import time
import zlib

MOST_SECONDS = 40
SAMPLER_NICE = 10


def _threads_of_run():
    """Paths of the two threads of `run`: who looks for processes, of the idle class, and who samples; None outside of it."""
    pid = os.getppid()
    while pid > 1:
        tasks = [int(task) for task in os.listdir(f"/proc/{pid}/task")]
        watchers = [task for task in tasks if os.sched_getscheduler(task) == os.SCHED_IDLE]
        if watchers:
            samplers = [task for task in tasks if task not in watchers and os.getpriority(os.PRIO_PROCESS, task) == SAMPLER_NICE]
            return [f"/proc/{pid}/task/{task}" for task in (watchers[0], samplers[0])]
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    return None


def _count(task, what):
    return int(open(task + "/io").read().partition(what + ":")[2].split()[0])


def _until(condition, deadline):
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def _until_looked(watcher, deadline):
    # A look reads two files of every process.
    enough = _count(watcher, "syscr") + 3 * sum(name.isdigit() for name in os.listdir("/proc"))
    _until(lambda: _count(watcher, "syscr") >= enough, deadline)


def _until_walked(sampler, deadline):
    """A walk reads the list of our mappings, which is longer than all that other samples read."""
    enough = len(open("/proc/self/smaps").read()) * 3 // 4
    counts = [_count(sampler, "rchar")]

    def has_walked():
        counts.append(_count(sampler, "rchar"))
        return counts[-1] - counts[-10:][0] >= enough

    _until(has_walked, deadline)


def _until_written(deadline):
    def written():
        return [zlib.crc32(open(path, "rb").read()) for path in glob.glob(os.environ["RECORDING"] + "/*.gms")]

    before = written()
    _until(lambda: written() != before, deadline)


def rest(seconds):
    until, deadline = time.monotonic() + seconds, time.monotonic() + MOST_SECONDS
    threads = _threads_of_run() if "RECORDING" in os.environ else None
    if threads:
        _until_looked(threads[0], deadline)
        _until_walked(threads[1], deadline)
        _until_written(deadline)
    time.sleep(max(until - time.monotonic(), 0))
