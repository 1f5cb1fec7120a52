"""The memory that each module keeps for its backward pass, and its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .knapsack import Item
from .trial import Bench


def candidates(model: Any) -> list[str]:
    """Paths of modules that can be checkpointed beside one another: the largest ones below the root that are no mere
    lists of others and have children of their own. A layer alone keeps little that its input is not."""
    found: list[str] = []

    def look(path: str, module: Any) -> None:
        children = dict(module.named_children())
        is_list = type(module).__name__ in ("ModuleList", "ModuleDict") or (
            type(module).__name__ == "Sequential" and any(next(child.children(), None) for child in children.values())
        )
        if path and children and not is_list:
            found.append(path)
            return
        for name, child in children.items():
            look(f"{path}.{name}" if path else name, child)

    look("", model)
    if found == [""] or not found:
        return []
    # A wrapper around everything is as good as the root: what is in it is used instead.
    while len(found) == 1:
        inner = model.get_submodule(found[0])
        below = [f"{found[0]}.{name}" for name, child in inner.named_children()]
        found = [p for below_path in below for p in _within(model, below_path)]
        if not found:
            return []
    return found


def _within(model: Any, path: str) -> list[str]:
    module = model.get_submodule(path)
    names = [path + "." + name for name in candidates(module)]
    is_block = next(module.children(), None) is not None and type(module).__name__ not in ("ModuleList", "Sequential")
    return names or ([path] if is_block else [])


def measure_modules(bench: Bench, step: Callable[[], Any], paths: list[str]) -> list[Item]:
    """Bytes that each keeps of one forward pass beyond its output, and the time of that pass: medians over the calls
    of a trial. A module that is called several times in a step counts with all of its calls."""
    rises: dict[str, list[int]] = {path: [] for path in paths}
    times: dict[str, list[int]] = {path: [] for path in paths}
    entered: dict[str, tuple[int, int]] = {}
    handles = []

    def before(path: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            bench._wait()
            entered[path] = bench.live_bytes(), time.perf_counter_ns()

        return hook

    def after(path: str) -> Callable[..., None]:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            if not bench.torch.is_grad_enabled() or path not in entered:
                return
            bench._wait()
            bytes_before, began_ns = entered.pop(path)
            times[path].append(time.perf_counter_ns() - began_ns)
            rises[path].append(bench.live_bytes() - bytes_before - _output_bytes(output))

        return hook

    for path in paths:
        module = bench.model.get_submodule(path)
        handles.append(module.register_forward_pre_hook(before(path)))
        handles.append(module.register_forward_hook(after(path)))
    try:
        bench.run(step)
    finally:
        for handle in handles:
            handle.remove()
    # What checkpointing keeps instead: the state of the random numbers, for each call.
    state = bench.torch.get_rng_state().nbytes if bench.source.device.is_cpu else 0
    items = []
    for path in paths:
        calls = len(rises[path]) / bench.steps
        if not calls:
            continue  # never called with gradients: there is nothing to save
        saved = sorted(rises[path])[len(rises[path]) // 2] - state
        middle_ns = sorted(times[path])[len(times[path]) // 2]
        items.append(Item(path, int(saved * calls), int(middle_ns * calls)))
    return items


def _output_bytes(output: Any) -> int:
    if hasattr(output, "nbytes") and hasattr(output, "dim"):
        return int(output.nbytes)
    values = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    return sum(map(_output_bytes, values))
