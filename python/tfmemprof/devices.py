"""Devices in TensorFlow's notation: `/GPU:0`, `GPU:1`, `/device:CPU:0`, `/job:localhost/…/device:GPU:0`."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any

from gpumemprof._counting.devices import Device

from ._tensorflow import require_tensorflow

LOGGER = logging.getLogger("tfmemprof")

_NAME = re.compile(r"(?:.*/)?(?:device:)?(CPU|GPU):?(\d*)", re.IGNORECASE)
_CODES = {"cpu": 64, "gpu": 65}
_told: set[str] = set()


@dataclass(frozen=True, eq=False)
class TFDevice(Device):
    """One device: `type` "cpu" or "gpu", `index` -1 for the CPU, as in telemetry. `why_cpu`: why a GPU that was asked
    for is not what is measured; empty if it is.
    """

    why_cpu: str = ""

    @property
    def code(self) -> int:
        """What the probe counts it by: GPUMEMPROF_TENSORFLOW_CPU or _GPU of the C API."""
        return _CODES[self.type]

    def __str__(self) -> str:
        return "/CPU:0" if self.is_cpu else f"/GPU:{self.index}"


CPU = TFDevice("cpu", -1)


def resolve_device(device: Any = None) -> Device:
    """The device of None (the first GPU, otherwise the CPU), a GPU number, or a TensorFlow device name.

    If a GPU is missing, one log line says so and the CPU is measured; the results say so too. Devices are listed, never
    initialized. Raises ValueError for an unknown name, TypeError for other types.
    """
    if isinstance(device, Device):
        return device
    if device is None:
        gpus = visible_gpus()
        return TFDevice("gpu", 0) if gpus else CPU
    if isinstance(device, bool) or not isinstance(device, (int, str)):
        raise TypeError(f"device must be None, a number or a name like '/GPU:0', not {type(device).__name__}")
    kind, index = _parse(device)
    if kind == "CPU":
        return CPU
    gpus = visible_gpus()
    if index < len(gpus):
        return TFDevice("gpu", index)
    why = f"/GPU:{index} does not exist here (TensorFlow sees {len(gpus)} GPUs); measuring /CPU:0"
    if why not in _told:
        _told.add(why)
        LOGGER.warning("tfmemprof: %s", why)
    return TFDevice("cpu", -1, why)


def _parse(device: int | str) -> tuple[str, int]:
    if isinstance(device, int):
        return "GPU", device
    match = _NAME.fullmatch(device.strip())
    if match is None:
        raise ValueError(f"{device!r} is not a device: write '/GPU:0' or '/CPU:0'")
    return match[1].upper(), int(match[2] or 0)


def visible_gpus() -> list[Any]:
    """The GPUs that TensorFlow will use or uses; empty if it is not installed. Makes no device."""
    try:
        tensorflow = require_tensorflow("finding GPUs")
    except ImportError:
        return []
    return list(tensorflow.config.get_visible_devices("GPU"))
