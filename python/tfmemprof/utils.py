"""Size formatting, and information about this machine and TensorFlow's devices. Unknown values are None, with the
reason."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from gpumemprof._counting.accelerators import device_memory
from gpumemprof._counting.machine import _meminfo, convert_bytes, format_bytes

from ._tensorflow import is_initialized, require_tensorflow
from .results import MIB

__all__ = ["convert_bytes", "format_bytes", "format_memory", "get_backend_info", "get_gpu_info", "get_system_info"]

_NO_DEVICE_YET = "TensorFlow has not initialized its devices yet, and a query would"
_NO_TOTAL = "TensorFlow does not report a GPU's total memory"


def format_memory(memory_mb: float, precision: int = 2) -> str:
    """"1.50 GB" of MiB, in the units of format_bytes."""
    return format_bytes(memory_mb * MIB, precision)


def get_gpu_info() -> dict[str, Any]:
    """The GPUs that TensorFlow sees: available, count, devices (a dict each), and error if there is none.

    A device has name, device_name, compute_capability, current_memory_mb and peak_memory_mb (of this process),
    memory_growth, total_memory_mb, and unknown: key -> why it is None. `total_memory` (MiB) is the sum of the totals,
    None if one is unknown. Initializes no device.
    """
    try:
        tensorflow = require_tensorflow("get_gpu_info")
    except ImportError as error:
        return {"available": False, "count": 0, "devices": [], "total_memory": None, "error": str(error)}
    gpus = tensorflow.config.list_physical_devices("GPU")
    devices = [_gpu(tensorflow, index, gpu) for index, gpu in enumerate(gpus)]
    totals = [device["total_memory_mb"] for device in devices]
    info: dict[str, Any] = {
        "available": bool(gpus),
        "count": len(gpus),
        "devices": devices,
        "total_memory": sum(totals) if totals and None not in totals else None,
    }
    if not gpus:
        built = tensorflow.test.is_built_with_cuda()
        info["error"] = "TensorFlow sees no GPU" if built else "this TensorFlow is built without GPUs"
    return info


def _gpu(tensorflow: Any, index: int, gpu: Any) -> dict[str, Any]:
    config = tensorflow.config.experimental
    total_mb, unknown = _total_mb(index)
    details = _asked(lambda: config.get_device_details(gpu), unknown, "device_name") or {}
    memory = None
    if is_initialized():
        memory = _asked(lambda: config.get_memory_info(f"GPU:{index}"), unknown, "current_memory_mb")
    else:
        unknown["current_memory_mb"] = _NO_DEVICE_YET
    if memory is None:
        unknown["peak_memory_mb"] = unknown["current_memory_mb"]
    return {
        "name": f"/GPU:{index}",
        "device_name": details.get("device_name"),
        "compute_capability": details.get("compute_capability"),
        "current_memory_mb": None if memory is None else memory["current"] / MIB,
        "peak_memory_mb": None if memory is None else memory["peak"] / MIB,
        "memory_growth": _asked(lambda: config.get_memory_growth(gpu), unknown, "memory_growth"),
        "total_memory_mb": total_mb,
        "unknown": unknown,
    }


def _total_mb(index: int) -> tuple[float | None, dict[str, str]]:
    """As the driver tells it, and the reason where it does not."""
    driver = device_memory(index)
    total = None if driver["accelerator"] is None else driver["total_bytes"]
    if total is not None:
        return total / MIB, {}
    why = driver["why_not"] if driver["accelerator"] is None else driver["unknown"]["total_bytes"]
    return None, {"total_memory_mb": f"{_NO_TOTAL}, and {why}"}


def _asked(question: Any, unknown: dict[str, str], key: str) -> Any:
    try:
        return question()
    except (ValueError, RuntimeError) as error:
        unknown[key] = str(error).splitlines()[0][:200]
        return None


def get_system_info() -> dict[str, Any]:
    """This machine, Python and TensorFlow; sizes in bytes. Reads TensorFlow's package metadata without importing it."""
    memory = _meminfo()
    return {
        "platform": platform.platform(),
        "python_version": platform.python_version(),
        "cpu_count": os.cpu_count(),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "tensorflow_version": _version_of("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"),
        "keras_version": _version_of("keras"),
        "tensorflow_loaded": "tensorflow" in sys.modules,
    }


def get_backend_info() -> dict[str, Any]:
    """How TensorFlow is built and configured: CUDA, ROCm, XLA, Keras' policy, eager execution."""
    tensorflow = require_tensorflow("get_backend_info")
    build = dict(tensorflow.sysconfig.get_build_info())
    keras = sys.modules.get("keras")
    policy = keras.config.dtype_policy().name if keras is not None and hasattr(keras, "config") else None
    return {
        "is_cuda_build": bool(build.get("is_cuda_build", False)),
        "is_rocm_build": bool(build.get("is_rocm_build", False)),
        "cuda_version": build.get("cuda_version"),
        "cudnn_version": build.get("cudnn_version"),
        "devices": [device.name for device in tensorflow.config.get_visible_devices()],
        "functions_run_eagerly": bool(tensorflow.config.functions_run_eagerly()),
        "xla_jit": tensorflow.config.optimizer.get_jit() or None,
        "dtype_policy": policy,
        "gpu_allocator": os.environ.get("TF_GPU_ALLOCATOR"),
    }


def _version_of(*packages: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    for package in packages:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return None
