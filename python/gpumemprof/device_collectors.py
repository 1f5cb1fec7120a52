"""The sources of a tracker's figures: one collector per kind of device."""

from ._counting.collectors import AllocatorTotals as AllocatorTotals
from ._counting.collectors import CPUDeviceCollector as CPUDeviceCollector
from ._counting.collectors import CudaDeviceCollector as CudaDeviceCollector
from ._counting.collectors import DeviceMemoryCollector as DeviceMemoryCollector
from ._counting.collectors import DeviceMemorySample as DeviceMemorySample
from ._counting.collectors import DeviceMemorySampleResult as DeviceMemorySampleResult
from ._counting.collectors import MPSDeviceCollector as MPSDeviceCollector
from ._counting.collectors import ROCmDeviceCollector as ROCmDeviceCollector
from ._counting.collectors import build_device_memory_collector as build_device_memory_collector
from ._counting.collectors import detect_torch_runtime_backend as detect_torch_runtime_backend
