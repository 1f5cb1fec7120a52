"""An ONNX model, loaded and run twice on the CPU by ONNX Runtime with its own settings."""

from __future__ import annotations

from typing import Any

from .facts import Figure, Measured, Resident
from .ort_api import Api, Session

_STATISTICS = "ONNX Runtime's own statistics of its CPU arena"


def measure(path: str, inputs: Any, outputs: Any) -> Measured:
    api = Api()
    resident = Resident()
    session = Session(api, path)
    loaded = session.statistics()
    made = {}
    kept = []  # the memory under the tensors
    for one in inputs:
        tensor, memory = session.tensor(one["element_type"], one["shape"], one["bytes"])
        made[one["name"]] = tensor
        kept.append(memory)
    # The first run shows the runtime what it needs; from the second on it takes that as one block, which can be more.
    for _ in range(2):
        session.run(made, outputs)
    ended = session.statistics()
    answer = Measured(f"ONNX Runtime {api.version}")
    answer.figures = [
        Figure("arena_loaded", loaded["InUse"], f"{_STATISTICS}: InUse after the model was loaded"),
        Figure("arena_peak", ended["MaxInUse"], f"{_STATISTICS}: MaxInUse after two runs"),
        Figure("arena_reserved", ended["TotalAllocated"], f"{_STATISTICS}: TotalAllocated after two runs"),
    ]
    if rise := resident.rise():
        answer.figures.append(rise)
    else:
        answer.unknown.append("rise of the process's resident memory: the kernel's peak could not be reset")
    return answer
