"""One event where nothing else happens: a loop that calls the hook."""
import launch
import pairs
from rows import Row, ns_row, ns_text


def one(tool, count, stacks=None):
    command = launch.program("hook_loop.py", "--library", launch.helper("libhook_loop.so"),
                             "--tool", tool, "--pairs", count)
    result = launch.run_recorded(command, stacks) if stacks else launch.run_json(command)
    taken = result["pairs"]
    return pairs.difference([p["on_ns"] for p in taken], [p["off_ns"] for p in taken]), result


def measure(size):
    count = size["hook_pairs"]
    ours, raw = one("gpumemprof", count, "python")
    memray, memray_raw = one("memray", count)
    rows = [ns_row("one event with a 20-frame Python stack, loop calling the hook", ours, 100,
                   [f"memray {ns_text(memray)}"], raw={"gpumemprof": raw, "memray": memray_raw})]
    for stacks in ("none", "both"):
        value, raw = one("gpumemprof", count, stacks)
        rows.append(Row(f"one event in the hook loop, --stacks {stacks}", ns_text(value), section="more",
                        raw=raw))
    control, raw = one("control", count)
    rows.append(Row("hook loop: control (nothing switched)", ns_text(control), section="more",
                    raw=raw))
    return rows
