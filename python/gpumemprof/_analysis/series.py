"""The only place that calls the C++ core for a series. docs/scores.md documents its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.native import native
from .free_blocks import FreeBlocks


def analyze_series(
    times_s: Sequence[float],
    values_bytes: Sequence[float],
    sensitivity: float,
    limit_bytes: float | None = None,
    free_blocks: FreeBlocks | None = None,
) -> dict[str, Any]:
    """The core's report of one series: {"samples", "findings", "patterns", "insights", "score", "unknown", …}.

    Times in seconds in any order, values in bytes; both of one length. Never fails on numbers: what a series cannot
    tell is in "unknown", by question."""
    report: dict[str, Any] = native().analyze_series(
        times_s,
        values_bytes,
        sensitivity,
        limit_bytes=limit_bytes,
        free_bytes=free_blocks.free_bytes if free_blocks else None,
        largest_free_block_bytes=free_blocks.largest_bytes if free_blocks else None,
    )
    return report
