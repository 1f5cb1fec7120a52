"""Loading data with `run --host`, beside the program alone, `run` without it, and memray, side by side in turns."""
import functools
import importlib.util
import random
import statistics

import launch
import pairs
import turns
from rows import Row, ratio_row, ratio_text

TITLE = "DataLoader of NumPy pictures with `run --host`"
BOUND = 1.03


def measure(size):
    command = launch.program("data_loading.py", "--turns")
    has_memray = importlib.util.find_spec("memray") is not None
    chance = random.Random(3)
    found = {"host": [], "run": [], "control": [], "memray": []}
    raw = []
    for index in range(size["host_pairs"]):
        with launch.folder() as path:
            commands = {"plain": command, "control": command, "run": launch.recorded(command, f"{path}/run"),
                        "host": launch.recorded(command, f"{path}/host", options=["--host"])}
            if has_memray and index < size["peer_process_pairs"]:
                python, *rest = command
                commands["memray"] = [python, "-m", "memray", "run", "-q", "-o", f"{path}/memray.bin", *rest]
            taken = turns.in_turn(commands, size["rounds"], chance)
        raw.append(taken)
        for kind in found.keys() & taken.keys():
            without = ("plain",) if kind == "control" else ("plain", "control")
            found[kind].append(statistics.median(a / b for other in without for a, b in zip(taken[kind], taken[other])))
    value = {kind: pairs.estimate(ratios) for kind, ratios in found.items() if ratios}
    peer = f"memray {ratio_text(value['memray'])} ({value['memray'].count} pairs)" if has_memray else "memray: peer absent"
    return [
        ratio_row(f"{TITLE}, processes side by side, {value['host'].count} pairs", value["host"], BOUND, [peer], raw=raw),
        Row("the same with `run` alone", ratio_text(value["run"]), section="more"),
        Row("the same: control (plain against plain)", ratio_text(value["control"]), section="more"),
    ]


def parts(size):
    return [functools.partial(measure, size)]
