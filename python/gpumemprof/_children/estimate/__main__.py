"""`python -m gpumemprof._estimate FOLDER JSON`: traces of models of a library, one file each."""

from __future__ import annotations

import json
import os
import sys

from ..error import NoAnswer, failed

_LOOP = "timm's training loop: label smoothing, foreach optimizer, prefetched batch, cudnn.benchmark"


def main() -> int:
    folder, text = sys.argv[1:3]
    wanted = json.loads(text)
    try:
        import torch
    except ImportError as error:
        return failed(folder, "model.error", f"PyTorch cannot be imported by {sys.executable}: {error}")
    from .library_model import LoopSetup, trace

    model = ""
    try:
        for job in wanted:
            file, model = job.pop("file"), job["model"]
            setup = LoopSetup(**job)
            trace(setup).write(
                os.path.join(folder, file),
                {
                    "subject": setup.model,
                    "batch": setup.batch,
                    "method": "model",
                    "torch": torch.__version__,
                    "optimizer": "" if setup.inference else setup.optimizer,
                    "precision": setup.precision,
                    **setup.facts,
                    "assumptions": [] if setup.inference else [_LOOP],
                },
            )
    except NoAnswer as error:
        return failed(folder, "model.error", str(error))
    except Exception as error:
        return failed(folder, "model.error", f"{model} cannot be traced: {type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
