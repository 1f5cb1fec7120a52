"""Forked children: whatever lock another thread held at the fork, the child's own calls go on."""

import pytest
from harness import PYTHON, execute

# A thread holds the lock at most forks: it does nothing but enter and leave what takes it.
HAMMER = """
import os, signal, sys, threading, time
import gpumemprof
from gpumemprof import {names}
{setup}
def hammer():
    while not over:
        call()
over = []
threads = [threading.Thread(target=hammer) for _ in range(2)]
sys.setswitchinterval(1e-5)
for thread in threads: thread.start()
ended = []
for n in range(200):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        call()
        os._exit(0)
    ended.append(os.waitpid(child, 0)[1])
    if ended[-1]: break
over.append(1)
for thread in threads: thread.join()
print(ended.count(0))
"""

HELD = """
import os, signal, threading
from gpumemprof import {names}
{setup}
taken, over = threading.Event(), threading.Event()
def hold():
    with {lock}:
        taken.set()
        over.wait()
thread = threading.Thread(target=hold); thread.start(); taken.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    call()
    os._exit(0)
print(os.waitpid(child, 0)[1])
over.set(); thread.join()
"""

OWNERS = {
    "a profiler's statistics": (
        "GPUMemoryProfiler",
        "p = GPUMemoryProfiler(device='cpu')\ndef call(): p.profile_function(len, ())",
        "p._statistics._lock",
    ),
    "a sampler": (
        "_core",
        "from gpumemprof._core.sampler import Sampler\ns = Sampler(int, 100, int)\ndef call(): s.keep(1); s.stop()",
        "s._lock",
    ),
    "a sampler's event": (
        "_core",
        "from gpumemprof._core.sampler import Sampler\ns = Sampler(int, 100, int)\ns.start(60)\ndef call(): s.stop()",
        "s._thread._stop._cond",
    ),
    "a flight recorder": (
        "OOMFlightRecorder, OOMFlightRecorderConfig",
        "r = OOMFlightRecorder(OOMFlightRecorderConfig(enabled=True))\ndef call(): r.record_event({'n': 1})",
        "r._lock",
    ),
    "the hook of uncaught exceptions": (
        "_oom",
        "from gpumemprof._oom import hook\nclass Watcher: pass\nw = Watcher()\ndef call(): hook.watch(w); hook.unwatch(w)",
        "hook._lock",
    ),
    "a watchdog": (
        "MemoryWatchdog",
        "d = MemoryWatchdog(max_memory_mb=1e9, device='cpu', auto_cleanup=False)\ndef call(): d.get_cleanup_stats()",
        "d._lock",
    ),
}


@pytest.mark.parametrize("owner", OWNERS)
def test_a_lock_held_at_the_fork_is_free_in_the_child(owner):
    names, setup, lock = OWNERS[owner]
    done = execute([PYTHON, "-c", HELD.format(names=names, setup=setup, lock=lock)]).ok()
    assert done.printed() == [0]


def test_two_hundred_children_of_a_program_that_profiles_all_the_time_end():
    names, setup, _ = OWNERS["a profiler's statistics"]
    assert execute([PYTHON, "-c", HAMMER.format(names=names, setup=setup)], timeout=120).ok().printed() == [200]
