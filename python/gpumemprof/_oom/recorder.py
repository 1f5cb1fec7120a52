"""Writes a bundle of files when memory runs out.

A bundle is written under a temporary name and then renamed, so a visible bundle is complete. Under `gpumemprof run`, or
after `gpumemprof.attach()`, it shows which stacks held the memory.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.fork import renews_after_fork
from .._core.memory_errors import oom_reason
from .._core.recording_folder import recording_folder
from .._core.torch import loaded_torch
from . import hook


@dataclass(frozen=True)
class OOMFlightRecorderConfig:
    """`max_total_mb` in MiB, for all bundles in `dump_dir` together. Raises ValueError for limits below 1."""

    enabled: bool = False
    dump_dir: str = "oom_dumps"
    buffer_size: int = 10_000
    max_dumps: int = 5
    max_total_mb: int = 256

    def __post_init__(self) -> None:
        for name in ("buffer_size", "max_dumps", "max_total_mb"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1")


@dataclass(frozen=True)
class OOMExceptionClassification:
    is_oom: bool
    reason: str | None


def classify_oom_exception(exc: BaseException) -> OOMExceptionClassification:
    """Whether an exception means that memory ran out, and by which rule.

    The rules: its type (PyTorch's OutOfMemoryError, TensorFlow's ResourceExhaustedError, Python's MemoryError),
    otherwise the text it was created with, otherwise the exception from which it was raised. PyTorch need not be
    loaded, and no method of the exception is called.
    """
    reason = oom_reason(exc)
    return OOMExceptionClassification(reason is not None, reason)


class OOMFlightRecorder:
    """Keeps the last `buffer_size` events and writes a bundle when memory runs out. Thread-safe; `dump` never raises.
    """

    def __init__(self, config: OOMFlightRecorderConfig | None = None) -> None:
        self.config = config or OOMFlightRecorderConfig()
        self.last_dump_path: str | None = None
        self.last_error: str | None = None
        self._events: deque[dict[str, Any]] = deque(maxlen=self.config.buffer_size)
        self._lock = threading.RLock()
        renews_after_fork(self)
        self._metadata: Callable[[], Callable[[], Mapping[str, Any]] | None] = lambda: None
        self._backend: str | None = None

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    def record_event(self, event: Mapping[str, Any]) -> None:
        """Adds an event. Does nothing if the recorder is disabled."""
        if self.config.enabled:
            with self._lock:
                self._events.append(dict(event))

    def snapshot_events(self) -> list[dict[str, Any]]:
        """Copies of the events, oldest first."""
        with self._lock:
            return [dict(event) for event in self._events]

    def dump(
        self,
        *,
        reason: str,
        exception: BaseException,
        context: str | None,
        backend: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Writes a bundle and returns its folder; None if the recorder is disabled, or on failure, with the reason in
        `last_error`.

        Afterwards `dump_dir` has at most `max_dumps` bundles of together at most `max_total_mb` MiB: the oldest are
        deleted, and a bundle that alone exceeds the limit loses its oldest events.
        """
        if not self.config.enabled:
            return None
        from .bundle import write_bundle

        try:
            with self._lock:
                path = write_bundle(
                    self.config,
                    self.snapshot_events(),
                    reason=reason,
                    exception=exception,
                    context=context,
                    backend=backend,
                    metadata=metadata or {},
                )
        except Exception as error:  # the program has trouble enough
            self.last_error = f"{type(error).__name__}: {error}"
            return None
        self.last_error, self.last_dump_path = None, path
        own = _dictionary_of(exception)
        if own is not None:  # without one it may get a second bundle
            own["_gpumemprof_bundle"] = path
        return path

    def has_bundle_of(self, exception: BaseException) -> bool:
        """Whether a recorder has already written a bundle for this exception object."""
        return "_gpumemprof_bundle" in (_dictionary_of(exception) or {})

    def watch_uncaught(
        self, metadata: Callable[[], Mapping[str, Any]] | None = None, backend: str | None = None
    ) -> None:
        """Also writes a bundle for an uncaught out-of-memory exception from now on. Does nothing if disabled.

        `metadata` is called at that moment; the object of a bound method is not kept alive.
        """
        if self.config.enabled:
            self._backend = backend
            if metadata is not None:
                bound = hasattr(metadata, "__self__")
                self._metadata = weakref.WeakMethod(metadata) if bound else lambda: metadata
            hook.watch(self)

    def unwatch(self) -> None:
        hook.unwatch(self)

    def _on_uncaught(self, error: BaseException, where: str) -> None:
        path = self.look_at(error, where)
        if path is not None and sys.stderr is not None:
            print(f"gpumemprof: out of memory: the holders are in {path}", file=sys.stderr)

    def look_at(self, error: BaseException, where: str) -> str | None:
        """Writes a bundle if the exception means that memory ran out and it has none yet; returns the bundle's folder.
        """
        verdict = classify_oom_exception(error)
        if not verdict.is_oom or self.has_bundle_of(error):
            return None
        ask = self._metadata()
        return self.dump(
            reason=verdict.reason or "out of memory",
            exception=error,
            context=where,
            backend=self._backend or _backend_in_use(),
            metadata=ask() if ask is not None else {},
        )


def _dictionary_of(exception: BaseException) -> dict[str, Any] | None:
    """Its attributes, asked past what its class may have put before them."""
    own = object.__getattribute__(exception, "__dict__")
    return own if type(own) is dict else None


def _backend_in_use() -> str:
    """"cuda" or "rocm" where this process has used a GPU, else "cpu"."""
    torch = loaded_torch()
    if torch is None or not torch.cuda.is_initialized():
        return "cpu"
    return "rocm" if getattr(torch.version, "hip", None) else "cuda"


_standing: OOMFlightRecorder | None = None


def standing_recorder() -> OOMFlightRecorder:
    """The recorder of this process for exceptions outside any tracker; not armed."""
    global _standing
    if _standing is None:
        folder = os.path.join(recording_folder() or "", "oom_dumps")
        _standing = OOMFlightRecorder(OOMFlightRecorderConfig(True, folder, 1000))
    return _standing


def watch_uncaught_oom(
    dump_dir: str | os.PathLike[str] | None = None, max_dumps: int = 5, max_total_mb: int = 256
) -> OOMFlightRecorder:
    """Writes a bundle for an uncaught out-of-memory exception, without a tracker. Idempotent.

    Bundles go to `dump_dir`; by default to "oom_dumps" in the folder of the process's recording, or in the working
    folder if there is none. Returns the recorder; its `unwatch()` disarms it. A line on stderr names the bundle.
    """
    global _standing
    if _standing is not None:
        _standing.unwatch()
    recorder = standing_recorder()
    chosen = os.fspath(dump_dir) if dump_dir is not None else recorder.config.dump_dir
    limits = (True, chosen, 1000, max_dumps, max_total_mb)
    if recorder.config != OOMFlightRecorderConfig(*limits):
        recorder = _standing = OOMFlightRecorder(OOMFlightRecorderConfig(*limits))
    recorder.watch_uncaught()
    return recorder


def read_bundle(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON files of a bundle by name without extension. Raises ValueError for a damaged file, OSError if the bundle
    is missing."""
    result: dict[str, Any] = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".json"):
            with open(os.path.join(path, name), "rb") as file:
                try:
                    result[name.removesuffix(".json")] = json.loads(file.read(1 << 30))
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"{os.path.join(path, name)}: {error}") from None
    return result
