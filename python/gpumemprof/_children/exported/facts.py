"""What was seen of one model, as the command reads it, and how resident memory is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..._counting.host_source import status_bytes


@dataclass
class Figure:
    name: str  # "arena_peak": the command has the words for it
    size_bytes: int
    how: str  # "ONNX Runtime's own statistics of its arena: MaxInUse"
    measured: bool = True


@dataclass
class Measured:
    runtime: str  # "ONNX Runtime 1.23.0"
    figures: list[Figure] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)  # those that the command does not know itself
    unknown: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "runtime": self.runtime,
            "figures": [
                {"name": one.name, "bytes": one.size_bytes, "how": one.how, "measured": one.measured}
                for one in self.figures
            ],
            "inputs": self.inputs,
            "unknown": self.unknown,
        }


class Resident:
    """How far the resident memory of this process rose at most, by the kernel's mark. Pages of the model's file that
    were read count, as they do where it is deployed; what the system took back meanwhile is not seen."""

    def __init__(self) -> None:
        self._start = status_bytes("VmRSS") or 0
        try:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")  # the mark begins anew
            self.is_reset = True
        except OSError:
            self.is_reset = False
        self._mark = status_bytes("VmHWM") or 0

    def rise(self) -> Figure | None:
        """None where the mark cannot be told from an older, higher one."""
        mark = status_bytes("VmHWM") or 0
        if not self.is_reset and mark <= self._mark:
            return None
        how = "VmHWM of the process that ran it: peak of its resident memory above the value before reading"
        return Figure("resident_rise", max(0, mark - self._start), how)
