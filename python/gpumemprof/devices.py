"""Devices as people write them, as one value."""

from ._counting.devices import CPU as CPU
from ._counting.devices import CurrentGpu as CurrentGpu
from ._counting.devices import Device as Device
from ._counting.devices import resolve_device as resolve_device
from ._counting.devices import torch_device as torch_device
