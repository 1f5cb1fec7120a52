"""What a process has of a device beyond what its allocator holds, after each of some steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._counting.accelerators import device_memory
from ..error import NoAnswer


class Meter:
    """The driver's figure of this process; where it has none (a slice of a GPU), how much more of the device is used than
    before, which other processes move too."""

    def __init__(self, index: int) -> None:
        self._index = index
        device = self._device()
        self.name, self.total_bytes = str(device["name"]), device["total_bytes"]
        self.driver = str(device.get("driver_version") or "")
        self._before = device["used_bytes"]
        self.basis = "process"
        self.others = len(device.get("processes") or ())

    def used_bytes(self) -> int:
        device = self._device()
        if self.basis == "process" and device["own_bytes"] is not None:
            return int(device["own_bytes"])
        self.basis = "device"
        if self._before is None or device["used_bytes"] is None:
            raise NoAnswer("the driver reports neither this process's use nor the device's")
        return max(0, int(device["used_bytes"]) - int(self._before))

    def _device(self) -> dict[str, Any]:
        found = device_memory(self._index, None)
        if found.get("accelerator") is None:
            raise NoAnswer(f"the driver's figures for the GPU are unknown: {found.get('why_not')}")
        return found


def measure(
    steps: Sequence[tuple[str, Callable[[], None]]], meter: Meter, held_bytes: Callable[[], int]
) -> dict[str, int]:
    """Of each step what came with it, outside of the allocator: `held_bytes` is what that has of the device."""
    sizes = {}
    before = 0
    for name, run in steps:
        run()
        outside = meter.used_bytes() - held_bytes()
        sizes[name] = max(0, outside - before)
        before = max(before, outside)
    if meter.basis == "device" and meter.others:
        why = "the driver does not report this process's use, and other processes use the GPU: stop them and try again"
        raise NoAnswer(why)
    return sizes
