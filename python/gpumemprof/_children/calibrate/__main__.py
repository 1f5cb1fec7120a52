"""`python -m gpumemprof._calibrate FOLDER DEVICE`: leaves FOLDER/answer.json, or FOLDER/calibrate.error with one line."""

from __future__ import annotations

import sys
from typing import Any

from ..error import NoAnswer, answered
from .measure import Meter, measure


def _calibrate(index: int) -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise NoAnswer(f"PyTorch cannot be imported by {sys.executable}: {error}") from None
    if not torch.cuda.is_available() or not torch.version.cuda:
        raise NoAnswer("PyTorch here sees no CUDA device, so there is nothing to calibrate")
    if index >= torch.cuda.device_count():
        raise NoAnswer(f"no CUDA device {index}")
    from .torch_steps import TorchSteps

    meter = Meter(index)  # before there is a context
    steps = TorchSteps(torch, index)
    order = [("context", steps.context), ("cublas", steps.products), ("cudnn", steps.convolutions)]
    sizes = measure(order, meter, steps.held_bytes)
    return {
        "schema": "gpumemprof.calibration/1",
        "device": torch.cuda.get_device_name(index),
        "total_bytes": meter.total_bytes,
        "multiprocessors": torch.cuda.get_device_properties(index).multi_processor_count,
        "driver": meter.driver,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "basis": meter.basis,
        "context_bytes": sizes["context"],
        "cublas_bytes": sizes["cublas"],
        "cudnn_bytes": sizes["cudnn"],
        "product_workspace_bytes": steps.product_workspace_bytes,
        "convolution": steps.convolution,
    }


def main() -> int:
    folder, index = sys.argv[1], int(sys.argv[2])
    return answered(folder, "calibrate.error", lambda: _calibrate(index))


if __name__ == "__main__":
    sys.exit(main())
