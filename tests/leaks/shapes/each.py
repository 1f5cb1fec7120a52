"""Runs programs one after the other, each in a process of its own that begins with PyTorch imported, and prints one
line a program: its process's number, when that started in ticks of the clock, what it ended with, its path. Run under
`gpumemprof run`, each is a recording."""

import gc
import os
import sys
import traceback
from pathlib import Path

import torch._dynamo
import torch.utils.data  # noqa: F401  these imports, an optimizer's among them, are most of a program's time


def run(path):
    """As `python path` would, but for the interpreter's own end, which takes a second: what the program's module
    holds is dropped, as it is there."""
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent / "site-packages"))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    module = {"__name__": "__main__", "__file__": str(path)}
    code = 0
    try:
        exec(compile(path.read_text(), str(path), "exec"), module)
    except Exception:
        traceback.print_exc()
        code = 1
    module.clear()
    sys.stderr.flush()
    os._exit(code)


def start_ticks(pid):
    """Field 22 of /proc/PID/stat (man 5 proc_pid_stat); a process that has ended has it until it is waited for."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def main():
    gc.freeze()
    for line in sys.stdin:
        path = Path(line.strip())
        pid = os.fork()
        if pid == 0:
            run(path)
        ticks = start_ticks(pid)
        _, status = os.waitpid(pid, 0)
        print(pid, ticks, os.waitstatus_to_exitcode(status), path, flush=True)


main()
