"""What the preloaded library costs a process that has no PyTorch in it."""
import itertools
import os
import time

import launch
import pairs
from rows import Row, ratio_text


def preload_environment():
    """The environment that `run` gives its program, asked of a program that prints it."""
    with launch.folder() as path:
        out = launch.run(launch.recorded(["/usr/bin/env", "-0"], os.path.join(path, "recording")))
    variables = dict(item.split("=", 1) for item in out.split("\0") if "=" in item)
    if "gpumemprof" not in variables.get("LD_PRELOAD", ""):
        raise launch.Failed("run gave its program no LD_PRELOAD with gpumemprof in it")
    return variables


def wall_ms(command, environment, null):
    begin = time.perf_counter()
    child = os.posix_spawn(command[0], command, environment,
                           file_actions=[(os.POSIX_SPAWN_DUP2, null, 1),
                                         (os.POSIX_SPAWN_DUP2, null, 2)])
    os.waitpid(child, 0)
    return (time.perf_counter() - begin) * 1e3


def added_row(title, with_it, without):
    added, ratio = pairs.difference(with_it, without), pairs.ratio(with_it, without)
    return Row(f"{title} ({pairs.estimate(without).median:.2f} ms without), {len(without)} pairs",
               f"{added.median:+.3f} ms [{added.low:+.3f}, {added.high:+.3f}], {ratio_text(ratio)}",
               section="more", raw={"with_ms": with_it, "without_ms": without})


def in_turn(count, with_it, without):
    """Calls both `count` times, the first of a pair changing every time; their results."""
    taken = {True: [], False: []}
    for index in range(count):
        for is_with in (index % 2 == 0, index % 2 == 1):
            taken[is_with].append((with_it if is_with else without)())
    return taken[True], taken[False]


def measure(size):
    preloaded = preload_environment()
    plain = {k: v for k, v in preloaded.items()
             if k != "LD_PRELOAD" and not k.startswith("GPUMEMPROF")}
    true, python = ["/bin/true"], [launch.PYTHON, "-c", "pass"]
    with open(os.devnull, "wb") as file, launch.folder() as path:
        null = file.fileno()

        def preloading(title, command, count):
            return added_row(f"`{title}` with the library preloaded", *in_turn(
                count, lambda: wall_ms(command, preloaded, null),
                lambda: wall_ms(command, plain, null)))

        numbers = itertools.count()
        run = added_row("`gpumemprof run -- /bin/true`, the whole command", *in_turn(
            size["run_pairs"],
            lambda: wall_ms(launch.recorded(true, f"{path}/{next(numbers)}"), plain, null),
            lambda: wall_ms(true, plain, null)))
        return [preloading("/bin/true", true, size["true_pairs"]),
                preloading("python -c pass", python, size["python_pairs"]), run]
