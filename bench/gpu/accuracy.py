"""`calibrate`, then `estimate` against measured peaks, as xMem (Middleware 2025) judges estimates: the error of the
device's peak as the driver tells it, and whether a run that is limited to the estimate runs out of memory."""

from __future__ import annotations

import json
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from work import MIB, Failed, Row, Work, last_json, most_used_bytes, program

# model, batch, optimizer, precision
MODELS: tuple[tuple[str, int, str, str], ...] = (
    ("timm:resnet50", 128, "SGD", "fp32"),
    ("timm:convnext_base", 48, "AdamW", "fp32"),
    ("timm:vit_base_patch16_224", 96, "AdamW", "amp"),
    ("timm:efficientnet_b0", 192, "RMSprop", "fp32"),
    ("timm:swin_base_patch4_window7_224", 48, "AdamW", "amp"),
    ("timm:mobilenetv3_large_100", 256, "SGD", "fp32"),
    ("hf:gpt2", 16, "AdamW", "amp"),
    ("hf:bert", 32, "AdamW", "fp32"),
    ("hf:opt", 12, "AdamW", "fp32"),
    ("hf:t5", 32, "Adafactor", "fp32"),
)
BOUND = 0.03


def measure(work: Work) -> list[Row]:
    calibration = work.out / "calibration.json"
    work.gpumemprof("calibrate", "-o", calibration, name="calibrate")
    found = json.loads(calibration.read_text())
    said = ", ".join(
        f"{name.replace('_bytes', '').replace('_', ' ')} {value / MIB:.1f} MiB"
        for name, value in found.items()
        if name.endswith("_bytes") and name != "total_bytes"
    )
    rows = [Row(f"calibrate ({found['device']}, driver {found['driver']})", said, raw=found)]
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda model: one(work, model, calibration), MODELS))
    rows += [row for row, _ in answers]
    known = [raw for _, raw in answers if raw]
    if known:
        errors = [raw["error"] for raw in known]
        failed = sum(raw["limited_out_of_memory"] for raw in known)
        within = sum(raw["low_bytes"] <= raw["device_bytes"] <= raw["high_bytes"] for raw in known)
        median = statistics.median(errors)
        rows.append(
            Row(
                f"median error of the device's peak, {len(known)} models",
                f"{100 * median:.2f} %, greatest {100 * max(errors):.2f} %; in the interval {within} of {len(known)}",
                f"≤ {100 * BOUND:.0f} %",
                median <= BOUND,
            )
        )
        rows.append(
            Row(
                "runs limited to the interval's upper end that ran out of memory",
                f"{failed} of {len(known)}",
            )
        )
    return rows


def one(work: Work, model: tuple[str, int, str, str], calibration: Path) -> tuple[Row, dict[str, Any]]:
    name, batch, optimizer, precision = model
    title = f"{name}, batch {batch}, {optimizer}, {precision}"
    words = program("gpu_train.py", *model)
    log = f"estimate-{name.replace(':', '-')}"
    try:
        told = json.loads(
            work.gpumemprof(
                "estimate", "--calibration", calibration, "--format", "json", "--", *words, name=log, timeout_s=200
            )
        )
        device_bytes, printed = most_used_bytes(words)
        counters = last_json(printed)
        peaks = told["peaks"]
        constant = peaks["device"]["expected_bytes"] - peaks["reserved"]["expected_bytes"]
        limit = peaks["device"]["high_bytes"] - constant
        again = last_json(work.run([*words, "--limit-bytes", limit]))
        recorded, _ = work.record(log, words)
        work.gpumemprof("analyze", recorded, name=f"{log}-recorded")
    except Failed as failure:
        return Row(title, f"not measured: {failure}"), {}
    raw = {
        "told": peaks,
        "device_bytes": device_bytes,
        "low_bytes": peaks["device"]["low_bytes"],
        "high_bytes": peaks["device"]["high_bytes"],
        "counters": counters,
        "limited_out_of_memory": bool(again.get("out_of_memory")),
        "error": abs(peaks["device"]["expected_bytes"] - device_bytes) / device_bytes,
    }

    def beside(kind: str, measured: int) -> str:
        expected = peaks[kind]["expected_bytes"]
        error = 100 * (expected - measured) / measured
        return f"{kind} {expected / MIB:.0f} told, {measured / MIB:.0f} measured MiB ({error:+.2f} %)"

    figure = "; ".join(
        (
            beside("device", device_bytes),
            beside("reserved", counters["reserved_bytes"]),
            beside("allocated", counters["allocated_bytes"]),
        )
    )
    return Row(title, figure, raw=raw), raw
