"""`python -m gpumemprof._calibrate FOLDER DEVICE`: leaves FOLDER/answer.json, or FOLDER/calibrate.error with one line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ..error import failed
from .measure import CannotMeasure, Meter, measure


def _calibrate(index: int) -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise CannotMeasure(f"PyTorch cannot be imported by {sys.executable}: {error}") from None
    if not torch.cuda.is_available() or not torch.version.cuda:
        raise CannotMeasure("PyTorch here sees no CUDA device, so there is nothing to calibrate")
    if index >= torch.cuda.device_count():
        raise CannotMeasure(f"no CUDA device {index}")
    from .torch_steps import TorchSteps

    meter = Meter(index)  # before there is a context
    steps = TorchSteps(torch, index)
    order = [("context", steps.context), ("cublas", steps.products), ("cudnn", steps.convolutions)]
    readings = {one.name: one.size_bytes for one in measure(order, meter, steps.held_bytes)}
    return {
        "schema": "gpumemprof.calibration/1",
        "device": torch.cuda.get_device_name(index),
        "total_bytes": meter.total_bytes,
        "multiprocessors": torch.cuda.get_device_properties(index).multi_processor_count,
        "driver": meter.driver,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "basis": meter.basis,
        "context_bytes": readings["context"],
        "cublas_bytes": readings["cublas"],
        "cudnn_bytes": readings["cudnn"],
        "product_workspace_bytes": steps.product_workspace_bytes,
        "convolution": steps.convolution,
    }


def main() -> int:
    folder, index = sys.argv[1], int(sys.argv[2])
    try:
        answer = _calibrate(index)
    except CannotMeasure as error:
        return failed(folder, "calibrate.error", str(error))
    except Exception as error:
        return failed(folder, "calibrate.error", f"{type(error).__name__}: {error}")
    with open(os.path.join(folder, "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file, indent=1)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
