"""gpumemprof: where the memory of a PyTorch program goes.

Importing this package imports nothing else. Every public name is in the table below, and its module is imported at the
first use of the name. So a program that only needs `format_bytes` does not load PyTorch, and `import gpumemprof` in a
library costs almost nothing. A feature that needs a missing optional library says so when it is used, with the
package to install (`pip install torch`).
"""

from __future__ import annotations

from importlib import import_module

# As typing.TYPE_CHECKING, which would cost half of the time that importing this package takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Module -> the public names that live in it. `__all__` is made from it, in this order.
_HOMES: dict[str, tuple[str, ...]] = {
    "snapshot": ("MemorySnapshot", "ProfileResult"),
    "profiler": ("GPUMemoryProfiler",),
    "context_profiler": (
        "profile_function", "profile_context", "ProfiledModule", "profile_model", "MemoryProfiler",
        "profile_model_training", "get_global_profiler", "set_global_profiler", "start_monitoring",
        "stop_monitoring", "get_summary", "clear_results", "get_profile_results",
    ),
    "tensor_tracker": ("TensorTracker",),
    "attachment": ("attach",),
    "phases": ("phase", "step"),
    "lines": ("profile_lines",),
    "holders": ("why_alive",),
    "jax_memory": ("jax_memory_analysis", "CompiledMemory"),
    "configuration_estimate": ("estimate_config",),
    "cpu_profiler": ("CPUMemoryProfiler", "CPUMemoryTracker", "CPUMemorySnapshot", "CPUProfileResult"),
    "utils": (
        "get_gpu_info", "get_system_info", "format_bytes", "convert_bytes", "memory_summary",
        "check_memory_fragmentation", "suggest_memory_optimization", "MemoryContext",
    ),
    "visualizer": ("MemoryVisualizer",),
    "trace": ("load", "Trace"),
    "analyzer": ("MemoryAnalyzer", "MemoryPattern", "PerformanceInsight"),
    "gap_analysis": ("GapFinding",),
    "collective_attribution": ("CollectiveAttributionResult",),
    "tracker": ("MemoryTracker", "TrackingEvent"),
    "watchdog": ("MemoryWatchdog",),
    "estimation": ("estimate", "Estimate", "EstimateError"),
    "oom_flight_recorder": (
        "OOMFlightRecorder", "OOMFlightRecorderConfig", "OOMExceptionClassification", "classify_oom_exception",
    ),
    "telemetry": (
        "TelemetryEventV2", "telemetry_event_from_record", "telemetry_event_to_dict", "validate_telemetry_record",
        "load_telemetry_events",
    ),
    "distributed": ("resolve_distributed_identity",),
    "optimizing": ("optimize", "Measure", "OptimizationResult"),
    "practices": (
        "CheckpointedModel", "DynamicBatchSizer", "GradientAccumulator", "KnowledgeDistillation", "LayerOffloader",
        "MemoryMonitor", "OptimizedDataset", "SparseEmbedding", "analyze_profiling_results", "auto_cleanup",
        "checkpoint_modules", "cleanup_distributed", "create_optimized_dataloader", "dynamic_quantization",
        "efficient_training_loop", "fine_grained_pruning", "freeze_layers", "inference_mode",
        "memory_efficient_forward", "memory_efficient_processing", "mixed_precision_training_example",
        "optimize_based_on_profiling", "profile_first_approach", "profile_memory_usage", "prune_model",
        "quantize_model", "selective_gradients", "setup_distributed", "sparse_matrix_operations",
        "train_distributed", "train_with_dynamic_batching",
    ),
    "device_collectors": (
        "DeviceMemoryCollector", "DeviceMemorySample", "build_device_memory_collector", "detect_torch_runtime_backend",
    ),
}  # fmt: skip
# Reached as `gpumemprof.NAME` too, without an import of their own.
_MODULES = frozenset(_HOMES) | {"counters", "dashboard", "devices", "distributed_analysis", "forecast", "integrations", "notebook"}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _HOME_OF:
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    elif name in ("load_ipython_extension", "unload_ipython_extension"):
        value = getattr(import_module(f"{__name__}.notebook"), name)  # %load_ext gpumemprof
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # the next touch is a plain lookup
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


def _version() -> str:
    """The version of the build: what CMakeLists.txt says, compiled into the native module."""
    from ._core.native import native

    return str(native().version)


def _look_for_a_second_profiler() -> None:
    """Two questions to the disk: a list of what is installed would take longer than this import."""
    from os.path import exists

    here = __file__.rpartition("/")[0]
    # stormlog up to 0.2.6 leaves its modules in this folder, where no cli.py is ours; later ones have their own.
    if exists(f"{here}/cli.py") or exists(f"{here.rpartition('/')[0]}/stormlog/__init__.py"):
        import_module(f"{__name__}._core.second_profiler").warn()


_look_for_a_second_profiler()

if TYPE_CHECKING:
    from .analyzer import *
    from .attachment import attach as attach
    from .configuration_estimate import estimate_config as estimate_config
    from .context_profiler import *
    from .cpu_profiler import *
    from .device_collectors import DeviceMemoryCollector as DeviceMemoryCollector
    from .device_collectors import DeviceMemorySample as DeviceMemorySample
    from .device_collectors import build_device_memory_collector as build_device_memory_collector
    from .device_collectors import detect_torch_runtime_backend as detect_torch_runtime_backend
    from .distributed import resolve_distributed_identity as resolve_distributed_identity
    from .collective_attribution import CollectiveAttributionResult as CollectiveAttributionResult
    from .estimation import *
    from .holders import why_alive as why_alive
    from .jax_memory import *
    from .lines import profile_lines as profile_lines
    from .oom_flight_recorder import OOMExceptionClassification as OOMExceptionClassification
    from .oom_flight_recorder import OOMFlightRecorder as OOMFlightRecorder
    from .oom_flight_recorder import OOMFlightRecorderConfig as OOMFlightRecorderConfig
    from .oom_flight_recorder import classify_oom_exception as classify_oom_exception
    from .optimizing import Measure as Measure
    from .optimizing import OptimizationResult as OptimizationResult
    from .optimizing import optimize as optimize
    from .phases import *
    from .practices import CheckpointedModel as CheckpointedModel
    from .practices import DynamicBatchSizer as DynamicBatchSizer
    from .practices import GradientAccumulator as GradientAccumulator
    from .practices import KnowledgeDistillation as KnowledgeDistillation
    from .practices import LayerOffloader as LayerOffloader
    from .practices import MemoryMonitor as MemoryMonitor
    from .practices import OptimizedDataset as OptimizedDataset
    from .practices import SparseEmbedding as SparseEmbedding
    from .practices import analyze_profiling_results as analyze_profiling_results
    from .practices import auto_cleanup as auto_cleanup
    from .practices import checkpoint_modules as checkpoint_modules
    from .practices import cleanup_distributed as cleanup_distributed
    from .practices import create_optimized_dataloader as create_optimized_dataloader
    from .practices import dynamic_quantization as dynamic_quantization
    from .practices import efficient_training_loop as efficient_training_loop
    from .practices import fine_grained_pruning as fine_grained_pruning
    from .practices import freeze_layers as freeze_layers
    from .practices import inference_mode as inference_mode
    from .practices import memory_efficient_forward as memory_efficient_forward
    from .practices import memory_efficient_processing as memory_efficient_processing
    from .practices import mixed_precision_training_example as mixed_precision_training_example
    from .practices import optimize_based_on_profiling as optimize_based_on_profiling
    from .practices import profile_first_approach as profile_first_approach
    from .practices import profile_memory_usage as profile_memory_usage
    from .practices import prune_model as prune_model
    from .practices import quantize_model as quantize_model
    from .practices import selective_gradients as selective_gradients
    from .practices import setup_distributed as setup_distributed
    from .practices import sparse_matrix_operations as sparse_matrix_operations
    from .practices import train_distributed as train_distributed
    from .practices import train_with_dynamic_batching as train_with_dynamic_batching
    from .profiler import GPUMemoryProfiler as GPUMemoryProfiler
    from .snapshot import MemorySnapshot as MemorySnapshot
    from .snapshot import ProfileResult as ProfileResult
    from .telemetry import TelemetryEventV2 as TelemetryEventV2
    from .telemetry import load_telemetry_events as load_telemetry_events
    from .telemetry import telemetry_event_from_record as telemetry_event_from_record
    from .telemetry import telemetry_event_to_dict as telemetry_event_to_dict
    from .telemetry import validate_telemetry_record as validate_telemetry_record
    from .tensor_tracker import TensorTracker as TensorTracker
    from .trace import Trace as Trace
    from .trace import load as load
    from .tracker import MemoryTracker as MemoryTracker
    from .tracker import TrackingEvent as TrackingEvent
    from .utils import *
    from .visualizer import MemoryVisualizer as MemoryVisualizer
    from .watchdog import MemoryWatchdog as MemoryWatchdog

    __version__: str
