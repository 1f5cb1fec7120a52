"""Profiling with few changes to the code: decorators, blocks, modules, and a shared profiler."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

from .._core.whole_file import whole_file
from . import wrapping
from .profiler import GPUMemoryProfiler, ProfiledBlock
from .results import ProfileResult
from .shared import existing_profiler, get_global_profiler

F = TypeVar("F", bound=Callable[..., Any])


@overload
def profile_function(func: F, /) -> F: ...
@overload
def profile_function(
    func: None = None, /, *, name: str | None = None, device: Any = None, profiler: GPUMemoryProfiler | None = None
) -> Callable[[F], F]: ...
def profile_function(
    func: Any = None, /, *, name: str | None = None, device: Any = None, profiler: GPUMemoryProfiler | None = None
) -> Any:
    """Decorator, `@profile_function` or `@profile_function(name="step")`, that profiles every call.

    The function's result, exceptions and kind (coroutine function, generator) do not change. Recursive calls are part
    of the outermost one. Results are in `profiler`, or in the shared one. It goes above `@torch.compile`, not below it.
    """

    def decorate(function: Any) -> Any:
        wrapping.check_function(function)
        return wrapping.profiled(function, name or wrapping.name_of(function), _chosen(profiler, device))

    return decorate if func is None else decorate(func)


def _chosen(profiler: GPUMemoryProfiler | None, device: Any) -> Callable[[], GPUMemoryProfiler]:
    """What gives the profiler at the time of a call: a decorator runs at import, when there may be no device yet."""
    if profiler is not None:
        return lambda: profiler
    return get_global_profiler if device is None else lambda: get_global_profiler(device)


def profile_context(
    name: str = "context", device: Any = None, profiler: GPUMemoryProfiler | None = None
) -> ProfiledBlock:
    """`with profile_context("load") as profiler:` profiles the block; `profiler` is the profiler that has the result.
    """
    chosen = _chosen(profiler, device)()
    return ProfiledBlock(chosen, name, enter=chosen)


class MemoryProfiler:
    """A profiler with shorter method names that can save its results to a file."""

    def __init__(self, device: Any = None) -> None:
        self.profiler = GPUMemoryProfiler(device)

    def start_monitoring(self, interval: float = 0.1) -> None:
        """As GPUMemoryProfiler.start_monitoring; `interval` in seconds."""
        self.profiler.start_monitoring(interval)

    def stop_monitoring(self) -> None:
        """As GPUMemoryProfiler.stop_monitoring."""
        self.profiler.stop_monitoring()

    def profile(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> ProfileResult:
        """Calls the function once and returns its ProfileResult, like GPUMemoryProfiler.profile_function."""
        result: ProfileResult = self.profiler.profile_function(func, *args, **kwargs)
        return result

    def context(self, name: str = "context") -> ProfiledBlock:
        """Profiles a block, like GPUMemoryProfiler.profile_context."""
        return self.profiler.profile_context(name)

    def wrap_module(self, module: Any, name: str | None = None) -> Any:
        """The module as a ProfiledModule of this profiler."""
        from .modules import ProfiledModule

        return ProfiledModule(module, name=name, profiler=self.profiler)

    def get_summary(self) -> dict[str, Any]:
        """As GPUMemoryProfiler.get_summary."""
        return self.profiler.get_summary()

    def clear(self) -> None:
        """As GPUMemoryProfiler.clear_results."""
        self.profiler.clear_results()

    def save_results(self, filename: str | Path) -> None:
        """Writes {"summary", "results", "snapshots"} as JSON; the file is written completely or not at all."""
        content = {
            "summary": self.get_summary(),
            "results": [result.to_dict() for result in self.profiler],
            "snapshots": [snapshot.to_dict() for snapshot in list(self.profiler.snapshots)],
        }
        with whole_file(filename) as made:
            Path(made).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def load_results(self, filename: str | Path) -> dict[str, Any]:
        """Reads a file of save_results. Raises ValueError with the byte for any other file."""
        data = Path(filename).read_bytes()
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{filename}: not JSON (at byte {getattr(error, 'pos', 0)})") from error
        if not isinstance(content, dict) or not {"summary", "results", "snapshots"} <= content.keys():
            raise ValueError(f"{filename}: not a file of save_results (at byte 0)")
        return content

    def __enter__(self) -> MemoryProfiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_monitoring()


def start_monitoring(interval: float = 0.1, device: Any = None) -> None:
    """Monitors with the shared profiler: one snapshot every `interval` seconds."""
    get_global_profiler(device).start_monitoring(interval)


def stop_monitoring() -> None:
    """Ends start_monitoring; does nothing if it was not called."""
    profiler = existing_profiler()
    if profiler is not None:
        profiler.stop_monitoring()


def get_summary() -> dict[str, Any]:
    """The shared profiler's summary, or only a message if there is no shared profiler."""
    profiler = existing_profiler()
    return {"message": "No global profiler instance"} if profiler is None else profiler.get_summary()


def clear_results() -> None:
    """Clears the shared profiler; does nothing if there is none."""
    profiler = existing_profiler()
    if profiler is not None:
        profiler.clear_results()


def get_profile_results(limit: int | None = None) -> list[ProfileResult]:
    """The shared profiler's results, oldest first; the last `limit` of them."""
    profiler = existing_profiler()
    results = [] if profiler is None else list(profiler)
    return results if limit is None else results[max(0, len(results) - max(limit, 0)) :]
