"""Loading data with `run --host`, beside the program alone, `run` without it, and memray, side by side in turns."""
import importlib.util

import launch
import turns
from rows import Row, ratio_row, ratio_text

TITLE = "DataLoader of NumPy pictures with `run --host`"
BOUND = 1.03


def measure(size):
    command = launch.program("data_loading.py", "--turns")
    has_memray = importlib.util.find_spec("memray") is not None
    recorders = {"run": lambda path: launch.recorded(command, f"{path}/run"),
                 "host": lambda path: launch.recorded(command, f"{path}/host", options=["--host"])}
    counts = dict.fromkeys(recorders, size["host_pairs"])
    if has_memray:
        recorders["memray"], counts["memray"] = turns.under_memray(command), size["peer_process_pairs"]
    value, raw = turns.beside_plain(command, recorders, counts, size["rounds"], 3)
    peer = f"memray {ratio_text(value['memray'])} ({value['memray'].count} pairs)" if has_memray else "memray: peer absent"
    return [
        ratio_row(f"{TITLE}, processes side by side, {value['host'].count} pairs", value["host"], BOUND, [peer], raw=raw),
        Row("the same with `run` alone", ratio_text(value["run"]), section="more"),
        Row("the same: control (plain against plain)", ratio_text(value["control"]), section="more"),
    ]
