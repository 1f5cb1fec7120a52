"""TensorFlow's recommendations, each with its evidence and the bytes at stake.

For a recording the core makes them (findings whose kind begins with `tensorflow_`). For a process without one the
evidence is the settings of TensorFlow and Keras, and the profiler's measurements.
"""

from __future__ import annotations

import sys
from typing import Any

from gpumemprof._analysis.findings import Findings
from gpumemprof._analysis.measured import Measured
from gpumemprof._core.printed import format_size

from ._tensorflow import TRACING, loaded_tensorflow
from .devices import visible_gpus

KIND = "tensorflow_"
_LEAST_BYTES = 1 << 20  # below it no advice is worth its sentence


def advice_of_recording(measured: Measured) -> Findings[dict[str, Any]]:
    """The core's."""
    found = [dict(finding) for finding in measured.findings if str(finding.get("kind", "")).startswith(KIND)]
    return Findings(sorted(found, key=lambda each: -(each.get("bytes") or 0)))


def advice_of_process(measured: Measured) -> Findings[dict[str, Any]]:
    """What the settings of this process and the measured calls are evidence for."""
    tensorflow = loaded_tensorflow()
    if tensorflow is None:
        return Findings((), "TensorFlow is not in this process, and samples do not show what a program does")
    if not measured.calls:
        return Findings((), measured.unknown or "samples do not show what a program does: profile its steps")
    if measured.basis == "host":
        return Findings((), "resident memory covers the whole process, not only tensors")
    largest = _largest_call(measured)
    answers = (_eager(tensorflow, largest), _precision(largest), _more_gpus(tensorflow, measured))
    found = [answer for answer in answers if answer]
    reason = "" if found else "only a recording shows which ops hold the memory: tfmemprof run"
    return Findings(sorted(found, key=lambda each: -(each["bytes"] or 0)), reason)


def _largest_call(measured: Measured) -> tuple[str, int]:
    """(name, bytes over its start) of the call whose peak rose the most; ("", 0) where none did."""
    calls = [call for call in measured.calls if not call.name.endswith(TRACING)]
    rises = [(call.name, call.peak_over_start_bytes or 0) for call in calls]
    return max(rises, key=lambda rise: rise[1], default=("", 0))


def _eager(tensorflow: Any, largest: tuple[str, int]) -> dict[str, Any] | None:
    name, rise = largest
    if not tensorflow.config.functions_run_eagerly() or rise < _LEAST_BYTES:
        return None
    size = format_size(rise)
    title = f"every tf.function runs eagerly, and {name} rises by {size}: a graph frees tensors after their last use"
    return _advice("tf_function", title, rise, {"functions_run_eagerly": True, "function": name},
                   "Remove tf.config.run_functions_eagerly(True)")  # fmt: skip


def _precision(largest: tuple[str, int]) -> dict[str, Any] | None:
    name, rise = largest
    keras = sys.modules.get("keras")
    if keras is None or not hasattr(keras, "config") or rise < _LEAST_BYTES:
        return None
    policy = str(keras.config.dtype_policy().name)
    gpus = visible_gpus()
    if policy != "float32" or not gpus:  # on most CPUs half precision is emulated
        return None
    half = "the saving is at most half of it"
    title = f"the policy of Keras is float32, and {name} rises by {format_size(rise)}: {half}"
    fix = 'Call tf.keras.mixed_precision.set_global_policy("mixed_float16") before the model is created'
    return _advice("mixed_precision", title, rise // 2, {"dtype_policy": policy, "function": name}, fix)


def _more_gpus(tensorflow: Any, measured: Measured) -> dict[str, Any] | None:
    gpus = visible_gpus()
    peaks = [call.peak_bytes for call in measured.calls if call.peak_bytes is not None]
    if len(gpus) < 2 or not peaks or max(peaks) < _LEAST_BYTES or not measured.device.startswith("GPU"):
        return None
    idle = [index for index in range(len(gpus)) if _peak_of(tensorflow, index) == 0]
    if not idle:
        return None
    title = f"{measured.device} holds {format_size(max(peaks))} while {len(idle)} of {len(gpus)} GPUs hold nothing"
    return _advice("distribution", title, max(peaks), {"idle_gpus": idle},
                   "Make and compile the model under tf.distribute.MirroredStrategy().scope()")  # fmt: skip


def _peak_of(tensorflow: Any, index: int) -> int | None:
    try:
        return int(tensorflow.config.experimental.get_memory_info(f"GPU:{index}")["peak"])
    except (ValueError, RuntimeError):
        return None


def _advice(kind: str, title: str, size_bytes: int, evidence: dict[str, Any], fix: str) -> dict[str, Any]:
    return {"kind": KIND + kind, "title": title, "bytes": size_bytes, "evidence": evidence, "fix": fix}
