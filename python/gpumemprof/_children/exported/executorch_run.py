"""A program of ExecuTorch, run once on the CPU. What its memory plan says is read from the file by the command; this is
for what a plan does not have in it: what kernels and delegates allocate themselves."""

from __future__ import annotations

from ..error import NoAnswer
from .facts import Measured, Resident


def measure(path: str, method: str) -> Measured:
    try:
        import torch
        from executorch.runtime import Runtime

        runtime = Runtime.get()
    except ImportError as error:
        why = f"ExecuTorch cannot be imported ({error}): install it with pip install executorch"
        raise NoAnswer(why) from None
    import importlib.metadata

    answer = Measured(f"ExecuTorch {importlib.metadata.version('executorch')}")
    resident = Resident()
    program = runtime.load_program(path)
    loaded = program.load_method(method)
    if loaded is None:
        raise NoAnswer(f"ExecuTorch cannot load the method {method}")
    about = loaded.metadata
    inputs = []
    for index in range(about.num_inputs()):
        meta = about.input_tensor_meta(index)
        inputs.append(torch.zeros(tuple(meta.sizes()), dtype=_dtype(torch, meta.dtype())))
        answer.inputs.append(
            {"name": f"input {index}", "type": str(inputs[-1].dtype).removeprefix("torch."), "shape": list(meta.sizes())}
        )
    loaded.execute(inputs)
    if rise := resident.rise():
        answer.figures.append(rise)
    return answer


def _dtype(torch: object, number: int) -> object:
    """Of the numbers of c10's scalar types."""
    names = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
    more = {11: "bool", 15: "bfloat16"}
    name = names[number] if 0 <= number < len(names) else more.get(number)
    if name is None:
        raise NoAnswer(f"an input has an unsupported type ({number})")
    return getattr(torch, name)
