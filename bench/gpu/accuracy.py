"""`calibrate`, then `estimate` against measured peaks, as xMem (Middleware 2025) judges estimates: the error of the
device's peak as the driver tells it, and whether a run that is limited to the estimate runs out of memory."""

from __future__ import annotations

import json
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from work import MIB, Failed, Row, Work, counters_of, last_json, most_used_bytes, program

Model = tuple[str, int, str, str]  # name, batch, optimizer, precision
MODELS: tuple[Model, ...] = (
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
    with ThreadPoolExecutor(5) as pool:
        measured = list(pool.map(lambda model: of_model(work, model, calibration), MODELS))
    return rows(json.loads(calibration.read_text()), measured)


def rows(calibration: dict[str, Any], measured: list[dict[str, Any]]) -> list[Row]:
    said = ", ".join(
        f"{name.removesuffix('_bytes').replace('_', ' ')} {value / MIB:.1f} MiB"
        for name, value in calibration.items()
        if name.endswith("_bytes") and name != "total_bytes"
    )
    title = f"calibrate ({calibration['device']}, driver {calibration['driver']})"
    out = [Row(title, said, raw=calibration), *map(row_of, measured)]
    known = [one for one in measured if "device_bytes" in one]
    if known:
        errors = [error_of(one) for one in known]
        within = sum(
            one["told"]["device"]["low_bytes"] <= one["device_bytes"] <= one["told"]["device"]["high_bytes"]
            for one in known
        )
        median = statistics.median(errors)
        figure = f"{100 * median:.2f} %, greatest {100 * max(errors):.2f} %; in the interval {within} of {len(known)}"
        what = f"median error of the device's peak, {len(known)} models"
        out.append(Row(what, figure, f"≤ {100 * BOUND:.0f} %", median <= BOUND))
        limited = [one["limited_out_of_memory"] for one in known if "limited_out_of_memory" in one]
        if limited:
            what = "runs limited to the interval's upper end that ran out of memory"
            out.append(Row(what, f"{sum(limited)} of {len(limited)}"))
    return out


def error_of(one: dict[str, Any]) -> float:
    return float(abs(one["told"]["device"]["expected_bytes"] - one["device_bytes"]) / one["device_bytes"])


def row_of(one: dict[str, Any]) -> Row:
    name, batch, optimizer, precision = one["model"]
    title = f"{name}, batch {batch}, {optimizer}, {precision}"
    if "failure" in one:
        return Row(title, f"not measured: {one['failure']}", raw=one)

    def beside(kind: str, measured: int) -> str:
        told = one["told"][kind]["expected_bytes"]
        error = 100 * (told - measured) / measured
        return f"{kind} {told / MIB:,.0f} predicted, {measured / MIB:,.0f} measured MiB ({error:+.2f} %)"

    figures = (
        beside("device", one["device_bytes"]),
        beside("reserved", one["counters"]["reserved_bytes"]),
        beside("allocated", one["counters"]["allocated_bytes"]),
    )
    return Row(title, "; ".join(figures), raw=one)


def told(work: Work, model: list[Any] | Model, calibration: Path) -> dict[str, Any]:
    """What `estimate` answers, without a GPU."""
    words = program("gpu_train.py", *model)
    options = ["--calibration", calibration, "--format", "json"]
    log = f"estimate-{str(model[0]).replace(':', '-')}"
    answer = work.gpumemprof("estimate", *options, "--", *words, name=log, timeout_s=200)
    peaks: dict[str, Any] = json.loads(answer)["peaks"]
    return peaks


def of_model(work: Work, model: Model, calibration: Path) -> dict[str, Any]:
    words = program("gpu_train.py", *model)
    try:
        peaks = told(work, model, calibration)
        constant = peaks["device"]["expected_bytes"] - peaks["reserved"]["expected_bytes"]
        limit = peaks["device"]["high_bytes"] - constant
        with work.room.taken(peaks["device"]["high_bytes"]):
            device_bytes, printed = most_used_bytes(words)
            counters = counters_of(printed)
            limited = last_json(work.run([*words, "--limit-bytes", limit]))
            recorded, _ = work.record(f"train-{model[0].replace(':', '-')}", words)
        work.gpumemprof("analyze", recorded, name=f"analyze-{model[0].replace(':', '-')}")
    except Failed as failure:
        return {"model": model, "failure": str(failure)}
    return {
        "model": model,
        "told": peaks,
        "device_bytes": device_bytes,
        "counters": counters,
        "limited_out_of_memory": "out_of_memory" in limited,
    }
