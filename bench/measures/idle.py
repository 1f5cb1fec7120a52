"""What the preloaded library costs a process that has no PyTorch in it."""
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
                           file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    os.waitpid(child, 0)
    return (time.perf_counter() - begin) * 1e3


def measure_command(title, command, count, preloaded, plain, null):
    taken = {True: [], False: []}
    for index in range(count):
        for is_preloaded in (index % 2 == 0, index % 2 == 1):
            environment = preloaded if is_preloaded else plain
            taken[is_preloaded].append(wall_ms(command, environment, null))
    added = pairs.difference(taken[True], taken[False])
    ratio = pairs.ratio(taken[True], taken[False])
    return Row(f"`{title}` with the library preloaded ({pairs.estimate(taken[False]).median:.2f} ms "
               f"without), {count} pairs",
               f"{added.median:+.3f} ms [{added.low:+.3f}, {added.high:+.3f}], {ratio_text(ratio)}",
               section="more", raw={"preloaded_ms": taken[True], "plain_ms": taken[False]})


def measure(size):
    preloaded = preload_environment()
    plain = {k: v for k, v in preloaded.items()
             if k != "LD_PRELOAD" and not k.startswith("GPUMEMPROF")}
    with open(os.devnull, "wb") as null:
        fd = null.fileno()
        return [
            measure_command("/bin/true", ["/bin/true"], size["true_pairs"], preloaded, plain, fd),
            measure_command("python -c pass", [launch.PYTHON, "-c", "pass"],
                            size["python_pairs"], preloaded, plain, fd),
        ]
