"""Runs programs one after the other, each in a process that was forked once PyTorch was there: nest.py PROGRAM…

Prints the PID of each, how it ended, and the PIDs of the processes that it started, so that their recordings are found
in the folder of all.
"""

import os
import runpy
import sys

import torch  # noqa: F401  # what the programs would each wait for

for path in sys.argv[1:]:
    told = os.pipe()
    child = os.fork()
    if child == 0:
        os.set_inheritable(told[1], False)
        sys.stdout = sys.stderr
        torch.set_num_threads(1)
        # Workers are started by multiprocessing, which forks.
        os.register_at_fork(after_in_child=lambda: os.write(told[1], f"{os.getpid()} ".encode()))
        status = 0
        try:
            runpy.run_path(path, run_name="__main__")
        except BaseException:
            import traceback

            traceback.print_exc()
            status = 1
        # Names of what is live at the end are told when a process ends as usual; here it is one that was forked.
        sys.exit(status)
    os.close(told[1])
    _, status = os.waitpid(child, 0)
    with os.fdopen(told[0]) as started:
        print(child, path, os.waitstatus_to_exitcode(status), started.read(), flush=True)
