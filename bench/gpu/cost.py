"""What recording costs a training step that fills the GPU, beside PyTorch's own history: eager, compiled, in CUDA graphs."""

from __future__ import annotations

from work import Row, Work, last_json, pairs, program

FORMS = ("eager", "compiled", "graphs")
TOOLS = ("gpumemprof", "control", "torch_history_all")
NAMES = {
    "gpumemprof": "gpumemprof",
    "control": "control (nothing is switched)",
    "torch_history_all": "_record_memory_history, its default stacks",
}
BOUND = 1.01


def measure(work: Work, seconds: float = 7) -> list[Row]:
    rows = []
    for form in FORMS:
        words = program("gpu_step.py", form, seconds, *TOOLS)
        _, printed = work.record(f"cost-{form}", words, timeout_s=150)
        result = last_json(printed)
        for tool, taken in result["tools"].items():
            value = pairs.ratio([pair["on_s"] for pair in taken], [pair["off_s"] for pair in taken])
            step_ms = 1000 * pairs.estimate([pair["off_s"] for pair in taken]).median
            ours = tool == "gpumemprof"
            events = f", {taken[0]['events_per_step']:.0f} events a step" if ours else ""
            rows.append(
                Row(
                    f"a training step, {form}, {NAMES[tool]}, on ÷ off",
                    f"{value.median:.4f}× [{value.low:.4f}, {value.high:.4f}], a step {step_ms:.1f} ms{events}",
                    f"≤ {BOUND}×" if ours else "",
                    pairs.ratio_is_met(value, BOUND) if ours else None,
                    {"pairs": taken},
                )
            )
    return rows
