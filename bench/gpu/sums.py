"""The sum of a device: what no part of it explains, of programs that each use a library or a form of memory. Alone on the
GPU: contexts and modules are told by the device's use."""

from __future__ import annotations

from typing import Any

from work import MIB, Failed, Row, Work, program

WHAT = ("plain", "cudnn", "nccl", "graphs", "pools", "expandable", "cufft", "triton", "jax", "cupy")
BOUND_MIB = 64
PARTS = ("process_used", "contexts", "modules", "libraries", "rounding")


def measure(work: Work) -> list[Row]:
    return [one(work, what) for what in WHAT]


def one(work: Work, what: str) -> Row:
    title = f"unexplained part of the device's sum, {what}"
    try:
        folder, _ = work.record(f"sum-{what}", program("gpu_libraries.py", what), timeout_s=120)
        return row_of(title, work.asks("analyze", folder)["driver"])
    except Failed as failure:
        return Row(title, f"not measured: {failure}")


def row_of(title: str, driver: dict[str, Any] | None) -> Row:
    sampled = driver and driver["devices"][0]["sampled"]
    if not sampled:
        return Row(
            title, "not measured: the driver was not recorded" if driver is None else "not measured: no sample"
        )
    parts = {name: sampled.get(f"{name}_bytes") for name in PARTS}
    said = ", ".join(
        f"{name.replace('_', ' ')} {value / MIB:.1f}" for name, value in parts.items() if value is not None
    )
    of = f"({said}, framework {sampled['framework']['bytes'] / MIB:.1f})"
    unexplained, joint = sampled["unexplained_bytes"], sampled.get("contexts_and_unexplained_bytes")
    if unexplained is None:
        together = "" if joint is None else f"; with the context's {joint / MIB:.1f} MiB {of}"
        return Row(title, f"unknown, because {sampled['unknown']['contexts']}{together}", raw={"sampled": sampled})
    within = abs(unexplained) <= BOUND_MIB * MIB
    return Row(title, f"{unexplained / MIB:+.1f} MiB {of}", f"≤ {BOUND_MIB} MiB", within, {"sampled": sampled})
