"""A program of torch.export, run once on the CPU while the probe counts PyTorch's allocator."""

from __future__ import annotations

from typing import Any

from .archive_check import check_archive
from ..error import NoAnswer
from .facts import Figure, Measured


def measure(path: str, batch: str, dims: Any) -> Measured:
    """`batch` is empty where none was given; `dims` are sizes by the name of their symbol or INPUT.INDEX."""
    try:
        import torch
    except ImportError as error:
        raise NoAnswer(f"PyTorch cannot be imported ({error}): install it with pip install torch") from None
    from ..._counting.counters import exact_available, source_for

    counts, why_not = exact_available()
    if not counts:
        raise NoAnswer(f"PyTorch's allocator cannot be counted here: {why_not}")
    check_archive(path)
    _refuse_pickles(torch)
    exported = torch.export.load(path)
    answer = Measured(f"PyTorch {torch.__version__}")
    answer.figures.append(
        Figure("weights", _weight_bytes(torch, exported), "storages of parameters, buffers and constants", measured=False)
    )
    # Its guards are source text out of the file: they are not compiled.
    module = exported.module(check_guards=False)
    with torch.no_grad():
        arguments, named = _inputs(torch, exported, batch, dims, answer)
        size = sum(one.untyped_storage().nbytes() for one in _leaves(torch, arguments, named))
        answer.figures.append(Figure("inputs", size, "their shapes", measured=False))
        source = source_for("cpu")
        span = source.begin()
        kept = module(*arguments, **named)
        figures = source.figures(span.end())
    del kept
    if not figures.peak_is_exact:
        raise NoAnswer(f"the peak is not exact: {figures.basis_reason}")
    peak = max(0, figures.peak_bytes - figures.before.allocated_bytes)
    answer.figures.append(Figure("run_peak", peak, "every allocation of PyTorch's CPU allocator, counted by the probe"))
    return answer


def _refuse_pickles(torch: Any) -> None:
    """This process is ours alone. The loader falls back to unpickling whatever it is where the safe way fails."""
    load = torch.load

    def safely(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("weights_only", True):
            raise NoAnswer("it has pickled objects, and unpickling them could run code")
        return load(*args, **{**kwargs, "weights_only": True})

    torch.load = safely


def _weight_bytes(torch: Any, exported: Any) -> int:
    storages = {}
    for tensor in (*exported.state_dict.values(), *exported.constants.values()):
        if isinstance(tensor, torch.Tensor):
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def _inputs(torch: Any, exported: Any, batch: str, dims: Any, answer: Measured) -> tuple[Any, Any]:
    """Zeros in the shapes that the graph's inputs have, in the layout of containers that the caller used."""
    names = set(exported.graph_signature.user_inputs)
    values = []
    used: set[str] = set()
    for node in exported.graph.nodes:
        if node.op != "placeholder" or node.name not in names:
            continue
        example = node.meta.get("val")
        if not isinstance(example, torch.Tensor):
            values.append(example)  # a number or None, as it was exported
            continue
        shape = [_size(node.name, at, size, batch, dims, used) for at, size in enumerate(example.shape)]
        values.append(torch.zeros(shape, dtype=example.dtype))
        kind = str(example.dtype).removeprefix("torch.")
        answer.inputs.append({"name": node.name, "type": kind, "shape": shape})
    if unknown := set(dims) - used:
        raise NoAnswer(f"no input has a dimension {sorted(unknown)[0]} whose size is open")
    arguments, named = torch.utils._pytree.tree_unflatten(values, exported.call_spec.in_spec)
    return arguments, named


def _size(name: str, at: int, size: Any, batch: str, dims: Any, used: set[str]) -> int:
    if isinstance(size, int):
        if at == 0 and batch and int(batch) != size:
            raise NoAnswer(f"--batch {batch}: the first dimension of input {name} was exported as {size}")
        return size
    for key in (str(size), f"{name}.{at}"):
        if key in dims:
            used.add(key)
            return int(dims[key])
    if at == 0 and batch:
        return int(batch)
    raise NoAnswer(f"input {name} has an open dimension {at}: give its size with --dim {size}=N")


def _leaves(torch: Any, arguments: Any, named: Any) -> list[Any]:
    leaves = torch.utils._pytree.tree_leaves((arguments, named))
    return [one for one in leaves if isinstance(one, torch.Tensor)]
