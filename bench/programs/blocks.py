"""Runs a step in blocks, with a recorder switched on and off in turn, and times the blocks.

Used by the programs beside it; the only output is one line of JSON on stdout, or with --turns a line a block.
"""
import argparse
import ctypes
import gc
import json
import os
import random
import sys
import tempfile
import time

class Nothing:
    """The control: on and off do the same, so its ratio shows the noise of the method."""

    def on(self):
        pass

    def off(self):
        pass

    def events(self):
        return None


class Gpumemprof(Nothing):
    """Needs the preloaded library; raises AttributeError where the program runs without it."""

    def __init__(self):
        library = ctypes.CDLL(None)
        self._start = library.gpumemprof_start
        self._stop = library.gpumemprof_stop
        self._count = library.gpumemprof_event_count
        self._count.restype = ctypes.c_uint64
        self._stop()

    def on(self):
        self._start()

    def off(self):
        self._stop()

    def events(self):
        return self._count()


class Session(Nothing):
    """A context manager a block, of tools that have no pause. That it begins and what it does at its end are not
    timed with the block."""

    def __init__(self, make):
        self._make = make
        self._session = None

    def on(self):
        self._session = self._make()
        self._session.__enter__()

    def off(self):
        if self._session is not None:
            self._session.__exit__(None, None, None)
            self._session = None


class TorchHistory(Nothing):
    """The allocator's own record of its events, with the frames of Python and, as by default, of C++."""

    def __init__(self):
        import torch

        self._record = torch.cuda.memory._record_memory_history

    def on(self):
        self._record(stacks="all", max_entries=1_000_000)

    def off(self):
        self._record(enabled=None)


def memray():
    """A tracker and a file a block."""
    import memray

    folder = tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_WORK"))

    def tracker():
        path = os.path.join(folder.name, "block.bin")
        if os.path.exists(path):
            os.unlink(path)
        return memray.Tracker(path)

    return Session(tracker)


def torch_profiler(with_stack):
    from torch.profiler import ProfilerActivity, profile

    return Session(lambda: profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=with_stack))


def tensorflow_profiler():
    """With the events of memory (host tracer 2)."""
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0)
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_WORK"))
    return Session(lambda: tf.profiler.experimental.Profile(folder.name, options))


TOOLS = {
    "control": Nothing,
    "gpumemprof": Gpumemprof,
    "memray": memray,
    "torch_memory": lambda: torch_profiler(with_stack=False),
    "torch_memory_stacks": lambda: torch_profiler(with_stack=True),
    "torch_history_all": TorchHistory,
    "tf_profiler": tensorflow_profiler,
}


def warm_up(step, warm_steps):
    """What comes between a switch and a timed block, the same for on and off: a collection, then steps that
    warm up what the switch and the collection have made cold."""
    gc.collect()
    for _ in range(warm_steps):
        step()


def timed_block(step, steps):
    """Wall and CPU seconds a step."""
    gc.disable()
    cpu = time.process_time()
    wall = time.perf_counter()
    for _ in range(steps):
        step()
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    gc.enable()
    return wall / steps, cpu / steps


def one_pair(tool, step, on_first, warm_steps, steps):
    pair = {"on_first": on_first}
    for is_on in (on_first, not on_first):
        if is_on:
            tool.on()
            warm_up(step, warm_steps)
            before = tool.events()
            wall, cpu = timed_block(step, steps)
            after = tool.events()
            end = time.perf_counter()
            tool.off()
            end = time.perf_counter() - end
            pair["on_s"], pair["on_cpu_s"] = wall, cpu
            # What the tool does when it is switched off, spread over the steps it had recorded.
            pair["end_s"] = end / (warm_steps + steps)
            if before is not None:
                pair["events_per_step"] = (after - before) / steps
        else:
            warm_up(step, warm_steps)
            pair["off_s"], pair["off_cpu_s"] = timed_block(step, steps)
    return pair


def toggled(tool, step, pairs, warm_steps, steps, seed, most_s):
    """Pairs come in twos of opposite order (on off, off on or the other way, drawn by chance), so
    that a drift of the machine's speed cancels out. None begins after `most_s` seconds."""
    chance = random.Random(seed)
    result = []
    end = time.monotonic() + most_s
    while len(result) < pairs and time.monotonic() < end:
        first = chance.random() < 0.5
        result.append(one_pair(tool, step, first, warm_steps, steps))
        result.append(one_pair(tool, step, not first, warm_steps, steps))
    return result


def by_turns(step, warm_steps, steps):
    """A block for each line on stdin, and a line with the seconds a step of it took. The first line, before any
    block, says that the program is ready."""
    print(0, flush=True)
    for _ in iter(sys.stdin.readline, ""):
        warm_up(step, warm_steps)
        print(timed_block(step, steps)[0], flush=True)


def main(program, step, defaults):
    """`defaults`: pairs, block_steps, warm_steps, first_steps (before anything is timed)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", choices=TOOLS, default="control")
    parser.add_argument("--pairs", type=int, default=defaults["pairs"])
    parser.add_argument("--block-steps", type=int, default=defaults["block_steps"])
    parser.add_argument("--warm-steps", type=int, default=defaults["warm_steps"])
    parser.add_argument("--first-steps", type=int, default=defaults["first_steps"])
    parser.add_argument("--turns", action="store_true", help="a block for each line on stdin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="fewer pairs where these take longer")
    options = parser.parse_args()

    result = {"program": program, "tool": options.tool, "block_steps": options.block_steps}
    for _ in range(options.first_steps):
        step()
    gc.collect()
    gc.freeze()  # so that the collection before each block is short, and the two blocks of a pair are close in time
    if options.turns:
        by_turns(step, options.warm_steps, options.block_steps)
        return
    tool = TOOLS[options.tool]()
    result["pairs"] = toggled(tool, step, options.pairs, options.warm_steps,
                              options.block_steps, options.seed, options.most_seconds)
    print(json.dumps(result))
    sys.stdout.flush()
