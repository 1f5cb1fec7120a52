"""`python -m gpumemprof._exported FOLDER JSON`: leaves FOLDER/answer.json, or FOLDER/model.error with one line."""

from __future__ import annotations

import json
import os
import resource
import sys

from ..error import failed
from .facts import CannotMeasure, Measured


def _measure(job: dict[str, object]) -> Measured:
    kind = job["kind"]
    if kind == "onnx":
        from .onnx_run import measure

        return measure(str(job["path"]), job["inputs"], job["outputs"])
    if kind == "pte":
        from .executorch_run import measure as run_program

        return run_program(str(job["path"]), str(job["method"]))
    from .torch_export import measure as run_exported

    return run_exported(str(job["path"]), str(job["batch"]), job["dims"])


def main() -> int:
    folder, text = sys.argv[1:3]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash of a runtime shall leave no file of this size
    try:
        answer = _measure(json.loads(text))
    except CannotMeasure as error:
        return failed(folder, "model.error", str(error))
    except MemoryError:
        return failed(folder, "model.error", "this machine does not have enough memory to run the model")
    except Exception as error:
        return failed(folder, "model.error", f"it cannot be run: {type(error).__name__}: {error}")
    with open(os.path.join(folder, "answer.json"), "w", encoding="utf-8", errors="replace") as file:
        json.dump(answer.as_json(), file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
