"""The sum of a device: what no part of it explains, of programs that each use a library or a form of memory. Alone on the
GPU: contexts and modules are told by the device's use."""

from __future__ import annotations

import json

from work import MIB, Failed, Row, Work, program

WHAT = ("plain", "cudnn", "nccl", "graphs", "pools", "expandable", "cufft", "triton", "jax", "cupy")
BOUND_MIB = 64
PARTS = ("process_used", "contexts", "modules", "libraries", "rounding", "unexplained")


def measure(work: Work) -> list[Row]:
    return [one(work, what) for what in WHAT]


def one(work: Work, what: str) -> Row:
    title = f"unexplained part of the device's sum, {what}"
    try:
        folder, _ = work.record(f"sum-{what}", program("gpu_libraries.py", what), timeout_s=120)
        driver = work.asks("analyze", folder)["driver"]
    except Failed as failure:
        return Row(title, f"not measured: {failure}")
    if driver is None:
        return Row(title, "not measured: the driver was not recorded")
    work.log(f"sum-{what}", json.dumps(driver, indent=1))
    sampled = driver["devices"][0]["sampled"]
    if sampled is None or sampled["unexplained_bytes"] is None:
        return Row(title, f"unknown: {json.dumps(sampled and sampled.get('unknown'))}")
    parts = {name: sampled.get(f"{name}_bytes") for name in PARTS}
    said = ", ".join(
        f"{name.replace('_', ' ')} {value / MIB:.1f}"
        for name, value in parts.items()
        if value is not None and name != "unexplained"
    )
    unexplained_mib = sampled["unexplained_bytes"] / MIB
    return Row(
        title,
        f"{unexplained_mib:+.1f} MiB ({said}, framework {sampled['framework']['bytes'] / MIB:.1f})",
        f"≤ {BOUND_MIB} MiB",
        abs(unexplained_mib) <= BOUND_MIB,
        {"sampled": sampled},
    )
