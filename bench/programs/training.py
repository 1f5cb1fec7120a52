"""A number of transformer steps in a number of threads, for the size of a recording. Prints JSON.

--orphan kills the recording parent with SIGKILL first, so that nobody seals the files.
"""
import argparse
import ctypes
import json
import os
import signal
import threading

import models


def event_count():
    try:
        count = ctypes.CDLL(None).gpumemprof_event_count
    except AttributeError:
        return None
    count.restype = ctypes.c_uint64
    return count()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400, help="of each thread")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--orphan", action="store_true")
    options = parser.parse_args()
    if options.orphan:
        os.kill(os.getppid(), signal.SIGKILL)

    def train(seed):
        step = models.transformer_step(seed)
        for _ in range(options.steps):
            step()

    if options.threads == 1:
        train(0)
    else:
        threads = [threading.Thread(target=train, args=(i,)) for i in range(options.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(json.dumps({"events": event_count(), "threads": options.threads,
                      "steps": options.steps}), flush=True)


if __name__ == "__main__":
    main()
