"""Weights in eight bits."""

from __future__ import annotations

import copy
import gc
import importlib.util
import warnings
from collections.abc import Iterable
from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("quantization")


def quantize_model(model: Any, calibration_data: Iterable[Any] | None = None) -> Any:
    """A copy of the model with 8-bit weights, for inference; the model itself does not change.

    Uses torchao if it is installed, which leaves activations as they are and works on GPUs; otherwise PyTorch's own
    quantization for CPUs. With `calibration_data`, inputs of the model, activations are 8-bit as well (PyTorch's static
    quantization).
    """
    if calibration_data is not None:
        return _static(model, calibration_data)
    if importlib.util.find_spec("torchao") is not None:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_

        quantized = copy.deepcopy(model).eval()
        quantize_(quantized, Int8WeightOnlyConfig())
        return quantized
    return dynamic_quantization(model)


def dynamic_quantization(model: Any) -> Any:
    """A copy whose Linear, LSTM and GRU layers have 8-bit weights and quantize activations as they run. CPU only.

    A model that is itself such a layer is quantized too; PyTorch's own function only replaces layers inside a model.
    """
    kinds = {torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU}
    quantization = _toolbox()
    inner = copy.deepcopy(model).eval()
    is_layer = type(inner) in kinds
    wrapped = torch.nn.Sequential(inner) if is_layer else inner
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        quantized = quantization.quantize_dynamic(wrapped, kinds, dtype=torch.qint8)
    del inner, wrapped
    gc.collect()  # the layers of the copy that were replaced are in cycles, and as large as the model
    return quantized[0] if is_layer else quantized


def _static(model: Any, calibration_data: Iterable[Any]) -> Any:
    quantization = _toolbox()
    engines = torch.backends.quantized.supported_engines
    engine = next((name for name in ("fbgemm", "x86", "qnnpack") if name in engines), None)
    if engine is None:
        raise RuntimeError("this PyTorch has no engine for quantized models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = quantization.QuantWrapper(copy.deepcopy(model).eval())
        wrapped.qconfig = quantization.get_default_qconfig(engine)
        quantization.prepare(wrapped, inplace=True)
        seen = 0
        with torch.no_grad():
            for data in calibration_data:
                wrapped(data)
                seen += 1
        if not seen:
            raise ValueError("calibration_data is empty: the ranges of the activations would be made up")
        return quantization.convert(wrapped, inplace=False)


def _toolbox() -> Any:
    try:
        import torch.ao.quantization as quantization
    except ImportError as error:
        raise ImportError("this PyTorch has no quantization of its own any more: pip install torchao") from error
    return quantization
