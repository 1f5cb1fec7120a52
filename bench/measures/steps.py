"""A training step with recording on and off: within one process, and between processes. With stacks alone, which is
what the peers record, and with attribution too, which is what `gpumemprof run` does by itself."""
import functools
import statistics

import launch
import pairs
import turns
from rows import Row, ns_row, ns_text, ratio_row, ratio_text

STACKS_ALONE = ("--no-attribution",)
# What it is called, the bound with stacks alone, the bound with attribution.
PROGRAMS = {
    "transformer": ("training step of a small transformer", 1.01, 1.015),
    "mlp": ("step of a tiny MLP", 1.03, 1.06),
}
PEERS = {
    "memray": "memray",
    "torch_memory": "torch.profiler memory",
    "torch_memory_stacks": "torch.profiler memory + stacks",
}


def ratios(result):
    taken = result["pairs"]
    without = [p["off_s"] for p in taken]
    return {
        "wall": pairs.ratio([p["on_s"] for p in taken], without),
        "cpu": pairs.ratio([p["on_cpu_s"] for p in taken], [p["off_cpu_s"] for p in taken]),
        "with_end": pairs.ratio([p["on_s"] + p["end_s"] for p in taken], without),
    }


def peer_text(title, tool, command, raw):
    """A peer on the same program by the same method, with what it does at the end said apart."""
    try:
        raw[tool] = launch.run_json(command)
    except launch.Failed as failure:
        return f"{title} not measured: {failure}"
    if not raw[tool]["pairs"]:
        return f"{title} not measured: no pair in the time that it has"
    value = ratios(raw[tool])
    return f"{title} {ratio_text(value['wall'])}, with its work at the end {value['with_end'].median:.2f}×"


def in_place(taken):
    """The events of a step, what one of them costs in place, and the seconds of a step without."""
    events = statistics.median(p["events_per_step"] for p in taken)
    difference = pairs.difference([p["on_s"] for p in taken], [p["off_s"] for p in taken])
    return events, difference.scaled(1e9 / events), statistics.median(p["off_s"] for p in taken)


def toggled(name, size, options):
    command = launch.program(f"{name}.py", "--tool", "gpumemprof", "--pairs", size["pairs"])
    return launch.run_recorded(command, options=options)


def measure_attribution(name, size):
    title, _, bound = PROGRAMS[name]
    result = toggled(name, size, ())
    events, marginal, _ = in_place(result["pairs"])
    about = f"{title} with attribution ({events:.0f} events and marks)"
    where = f"one event or mark with attribution: (on − off) ÷ events and marks, {name} step"
    return [
        ratio_row(f"{about}, on and off within a process, {len(result['pairs'])} pairs",
                  ratios(result)["wall"], bound, raw=result),
        Row(where, ns_text(marginal), section="more"),
    ]


def measure_toggled(name, size):
    title, bound, _ = PROGRAMS[name]
    raw = {}
    raw["gpumemprof"] = result = toggled(name, size, STACKS_ALONE)
    raw["control"] = launch.run_json(
        launch.program(f"{name}.py", "--tool", "control", "--pairs", size["control_pairs"]))
    ours, control = ratios(result), ratios(raw["control"])
    peers = [peer_text(peer, tool, launch.program(f"{name}.py", "--tool", tool, "--pairs", size["peer_pairs"]), raw)
             for tool, peer in PEERS.items()]

    taken = result["pairs"]
    events, marginal, step_s = in_place(taken)
    about = f"{title} with Python stacks ({events:.0f} events in {step_s * 1e3:.3g} ms)"
    rows = [
        ratio_row(f"{about}, on and off within a process, {len(taken)} pairs", ours["wall"], bound,
                  peers, raw=raw),
        Row(f"{name} step, within a process: CPU time", ratio_text(ours["cpu"]), section="more"),
        Row(f"{name} step, within a process: control (nothing switched)",
            ratio_text(control["wall"]), section="more"),
    ]
    where = f"one event: (on − off) ÷ events, {name} step"
    if name == "transformer":
        rows.append(ns_row(where, marginal, 150))
    else:
        rows.append(Row(where, ns_text(marginal), section="more"))
    return rows


def measure_processes(name, size):
    """Processes side by side, each of its own from start to end: what the preloaded library costs even while it
    records nothing is in here too."""
    title, bound, _ = PROGRAMS[name]
    command = launch.program(f"{name}.py", "--turns")
    recorders = {"gpumemprof": lambda path: launch.recorded(command, f"{path}/recording", options=STACKS_ALONE),
                 "memray": turns.under_memray(command)}
    counts = {"gpumemprof": size["process_pairs"], "memray": size["peer_process_pairs"]}
    found, raw = turns.beside_plain(command, recorders, counts, size["rounds"], 2)
    value, memray, control = (found[kind] for kind in ("gpumemprof", "memray", "control"))
    return [
        ratio_row(f"{title} with Python stacks, pairs of processes side by side, {value.count} pairs", value, bound,
                  [f"memray {ratio_text(memray)} ({memray.count} pairs)"], raw=raw),
        Row(f"{name} step, processes side by side: control (plain against plain)", ratio_text(control), section="more"),
    ]


def parts(size):
    return [functools.partial(part, name, size)
            for name in PROGRAMS for part in (measure_toggled, measure_attribution, measure_processes)]
