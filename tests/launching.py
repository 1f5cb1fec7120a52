"""What the tests of `gpumemprof run` share. A stand-in library takes the probe's place: launching is tested, not recording."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import harness

BIN = harness.COMMAND
PYTHON = os.path.realpath(sys.executable)
NOBODY = 65534

STAND_IN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
  const char* folder = getenv("STAND_IN_DIR");
  if (!folder) return;
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
  FILE* file = fopen(path, "w");
  if (file) fclose(file);
}
"""

COUNT_SIGNALS = """
import signal, sys, time
got = []
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
    signal.signal(s, lambda number, frame: got.append(signal.Signals(number).name))
print("ready", flush=True)
deadline = time.monotonic() + 20
while not got and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(0.5)  # for a second one, if there is one
print(*got, flush=True)
"""

# Ends once `run` has looked at its processes twice, however busy the machine is: its thread for that is idle-class.
# A look reads the state of every process, in two calls, and a little more; only after it does the thread wait.
UNTIL_SEEN = """
import os, time
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
def is_idle_class(task):
    try:
        return os.sched_getscheduler(task) == os.SCHED_IDLE
    except ProcessLookupError:
        return False
def watchers(pid):
    return [f"/proc/{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task") if is_idle_class(int(task))]
def reads(path):
    return int(open(path + "/io").read().partition("syscr:")[2].split()[0])
def waits(path):
    return int(open(path + "/status").read().partition("nonvoluntary")[0].rpartition("voluntary_ctxt_switches:")[2])
deadline, pid = time.monotonic() + 50, os.getppid()
while not watchers(pid) and time.monotonic() < deadline:
    pid = parent(pid) or os.getppid()  # its thread may not have begun
    time.sleep(0.01)
watcher = watchers(pid)[0]
enough = reads(watcher) + max(4 * sum(name.isdigit() for name in os.listdir("/proc")), 100)
while reads(watcher) < enough and time.monotonic() < deadline:
    time.sleep(0.1)
before = waits(watcher)
while waits(watcher) == before and time.monotonic() < deadline:
    time.sleep(0.1)
"""

JOB_CONTROL = r"""
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
try:
    os.setpgid(pid, pid)
except OSError:
    pass
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(0, os.getpgrp())
    print("STOPPED", os.WSTOPSIG(status), flush=True)
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
os.tcsetpgrp(0, os.getpgrp())
print("ENDED", os.waitstatus_to_exitcode(status), flush=True)
"""


def compile_c(folder, name, source, *options):
    path = Path(folder) / (name + ".c")
    path.write_text(source)
    out = Path(folder) / name
    subprocess.run(["gcc", "-O1", "-o", out, path, *options], check=True)
    return str(out)


def meta_of(tmp_path, name="meta.json", folder="rec"):
    return json.loads((tmp_path / folder / name).read_text())


def loaded_pids(tmp_path):
    return {int(p.name) for p in (tmp_path / "loaded").iterdir()}


class Terminal:
    """A terminal with a shell that runs one job in it."""

    def __init__(self, words, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PYTHON, [PYTHON, "-c", JOB_CONTROL, *words], env)
        self.text = ""

    def wait_for(self, word):
        deadline = time.monotonic() + 30
        while word not in self.text:
            assert time.monotonic() < deadline, self.text
            try:
                self.text += os.read(self.fd, 4096).decode()
            except OSError:  # the terminal's other end is closed
                assert word in self.text, self.text

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)
