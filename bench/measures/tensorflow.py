"""Steps of TensorFlow with recording on and off within one process, and its own profiler by the same method."""
import functools
import importlib.util

import launch
from measures.steps import in_place, peer_text, ratios
from rows import Row, ratio_row, ratio_text

PROGRAMS = {
    "fit": ("Keras fit, 20 batches", 1.01),
    "function": ("step of a tf.function", 1.01),
    "eager": ("eager step", 1.03),
}
PEER = "TensorFlow's profiler (host tracer)"
# With what TensorFlow needs to start, nine programs and under five minutes, also on a slow machine.
MOST_S = {"gpumemprof": 45, "control": 15, "tf_profiler": 15}
LEAST_PAIRS = 60


def command(name, tool, count):
    return launch.program("tf_steps.py", name, "--tool", tool, "--pairs", count, "--most-seconds", MOST_S[tool])


def measure(name, size):
    if importlib.util.find_spec("tensorflow") is None:
        raise launch.Failed("TensorFlow is not installed in this Python")
    title, bound = PROGRAMS[name]
    raw = {}
    count = size["tensorflow_pairs"]
    raw["gpumemprof"] = result = launch.run_recorded(command(name, "gpumemprof", count))
    if len(result["pairs"]) < min(LEAST_PAIRS, count):
        raise launch.Failed(f"{title}: {len(result['pairs'])} pairs in {MOST_S['gpumemprof']} s are too few to say")
    raw["control"] = launch.run_json(command(name, "control", count))
    if not raw["control"]["pairs"]:
        raise launch.Failed(f"{title}: no pair of the control in {MOST_S['control']} s")
    ours, control = ratios(result), ratios(raw["control"])
    peer = peer_text(PEER, "tf_profiler", command(name, "tf_profiler", size["peer_pairs"]), raw)
    taken = result["pairs"]
    events, marginal, step_s = in_place(taken)
    return [
        ratio_row(f"{title} ({events:.0f} events in {step_s * 1e3:.3g} ms), on and off within a process, "
                  f"{len(taken)} pairs", ours["wall"], bound, [peer], raw=raw),
        Row(f"{title}: control (nothing switched)", ratio_text(control["wall"]),
            section="more"),
        Row(f"one event: (on − off) ÷ events, {title}", f"{marginal.median:.0f} ns", section="more"),
    ]


def parts(size):
    return [functools.partial(measure, name, size) for name in PROGRAMS]
