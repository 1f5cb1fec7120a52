"""Predicts a function's GPU memory without a GPU: `gpumemprof.estimate(step, model, batch)`.

The function runs in a child process on tensors without memory. This process and its GPU are not affected.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.page import command


class EstimateError(RuntimeError):
    """The function cannot be traced; the message says why."""


@dataclass
class Estimate:
    """Peaks in bytes. `device_low_bytes` to `device_high_bytes` is the middle 90 % of measured peaks; these were
    measured only for timm models in fp32 with momentum on one A100. `report` is the full output of `gpumemprof estimate
    --format json`."""

    live_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    device_bytes: int
    device_low_bytes: int
    device_high_bytes: int
    report: dict[str, Any] = field(repr=False)


def estimate(
    function: Callable[..., Any],
    *args: Any,
    calls: int = 2,
    settings: Sequence[str] = (),
    device_constant: str = "",
    **kwargs: Any,
) -> Estimate:
    """Calls `function(*args, **kwargs)` `calls` times, as two steps of a loop. Every model and tensor among the
    arguments is moved to a simulated GPU, as is whatever the function itself moves to "cuda".

    `settings`: values of PYTORCH_ALLOC_CONF to compare, in `report["table"]`. `device_constant`: the size of the CUDA
    context and library handles, such as "1.5GiB".
    """
    if calls < 1:
        raise ValueError("calls must not be empty")
    with tempfile.TemporaryDirectory(prefix="gpumemprof-estimate-") as folder:
        _trace_in_child(folder, function, args, kwargs, calls)
        options = [option for text in settings for option in ("--settings", text)]
        if device_constant:
            options += ["--device-constant", device_constant]
        return _answer(_only_trace(folder), options)


def _trace_in_child(folder: str, function: Any, args: Any, kwargs: Any, calls: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            _trace(folder, function, args, kwargs, calls)
        finally:
            os._exit(1)
    os.waitpid(child, 0)


def _trace(folder: str, function: Any, args: Any, kwargs: Any, calls: int) -> None:
    """In the child, which does not come back."""
    try:
        import torch

        from .._children.estimate.script import ScriptTrace, fail, leave

        torch.set_num_threads(1)  # the threads of a pool are not there after a fork
        trace = ScriptTrace(folder, "meta", steps=calls + 1)
        trace.begin()
        args, kwargs = torch.utils._pytree.tree_map(_moved, (args, kwargs))
        for _ in range(calls):
            function(*args, **kwargs)
        trace.finish()
        leave(0)
    except BaseException as error:
        from .._children.estimate.script import fail, leave

        fail(folder, f"{type(error).__name__}: {error}")
        leave(1)


def _moved(value: Any) -> Any:
    import torch

    return value.to("cuda") if isinstance(value, (torch.nn.Module, torch.Tensor)) else value


def _only_trace(folder: str) -> str:
    names = os.listdir(folder)
    for name in names:
        if name.endswith(".trace"):
            return os.path.join(folder, name)
    for name in names:
        if name.endswith(".error"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                raise EstimateError(file.read().strip())
    raise EstimateError("the child process that traced the function ended without a result")


def _command() -> str:
    try:
        return command()
    except FileNotFoundError as error:
        raise EstimateError(str(error)) from None


def _answer(trace: str, options: list[str]) -> Estimate:
    done = subprocess.run(
        [_command(), "estimate", "--trace", trace, "--format", "json", *options], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise EstimateError(done.stderr.strip().removeprefix("gpumemprof: "))
    report = json.loads(done.stdout)
    peaks = report["peaks"]
    return Estimate(
        live_bytes=peaks["live"]["expected_bytes"],
        allocated_bytes=peaks["allocated"]["expected_bytes"],
        reserved_bytes=peaks["reserved"]["expected_bytes"],
        device_bytes=peaks["device"]["expected_bytes"],
        device_low_bytes=peaks["device"]["low_bytes"],
        device_high_bytes=peaks["device"]["high_bytes"],
        report=report,
    )
