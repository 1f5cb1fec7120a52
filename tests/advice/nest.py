"""Runs programs one after the other, each in a process that was forked once PyTorch was there: nest.py PROGRAM…

Prints the PID of each, so that its recording is found in the folder of all.
"""

import os
import runpy
import sys

import torch  # noqa: F401  # what the programs would each wait for

for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr
        torch.set_num_threads(1)
        status = 0
        try:
            runpy.run_path(path, run_name="__main__")
        except BaseException:
            import traceback

            traceback.print_exc()
            status = 1
        # Names of what is live at the end are told when a process ends as usual; here it is one that was forked.
        sys.exit(status)
    _, status = os.waitpid(child, 0)
    print(child, path, os.waitstatus_to_exitcode(status), flush=True)
