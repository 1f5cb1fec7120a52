"""`python -m gpumemprof._exported FOLDER JSON`: leaves FOLDER/answer.json, or FOLDER/model.error with one line."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from ..error import NoAnswer, answered
from .facts import Measured


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

    def answer() -> dict[str, Any]:
        try:
            return _measure(json.loads(text)).as_json()
        except MemoryError:
            raise NoAnswer("this machine does not have enough memory to run the model") from None

    return answered(folder, "model.error", answer, "it cannot be run: ")


if __name__ == "__main__":
    sys.exit(main())
