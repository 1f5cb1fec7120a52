"""The probe's exact counters as the live parts use them: absent without a probe, and never an error."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._core import native


class ExactCounters(NamedTuple):
    """Of one device since counting began. `untracked_count` > 0: the others are lower bounds."""

    live_bytes: int
    alloc_count: int
    free_count: int
    alloc_bytes: int
    free_bytes: int
    unknown_free_count: int
    untracked_count: int


def begin_counting() -> tuple[bool, str]:
    """Whether allocator events are counted in this process from now on; and if not, why."""
    from .counters import exact_available

    return exact_available()


def read_counters(device_type: int, device_index: int) -> ExactCounters | None:
    """The counters of a device (c10::DeviceType, index); None where nothing is known of it yet."""
    module = _native()
    values = module.counters(device_type, device_index) if module is not None else None
    return ExactCounters(*values) if values is not None else None


class PeakWatch:
    """The peak of a device between two looks, from the probe, with no moment left out. One thread at a time.

    With `counts_all` the probe's live bytes are the figure wanted; otherwise it is only asked how far they rose.
    """

    def __init__(self, device_type: int, device_index: int, *, counts_all: bool) -> None:
        self._device = (device_type, device_index)
        self._counts_all = counts_all
        self._module = _native()
        self._scope = self._begin()

    def take(self, before_bytes: int) -> int | None:
        """The peak since the last call (or the beginning), when it was `before_bytes`; None where it is not told."""
        ended, self._scope = self._scope, self._begin()  # the next one opens before this one closes
        result = self._end(ended)
        if result is None:
            return None
        start, _, peak = result[:3]
        return int(peak if self._counts_all else before_bytes + peak - start)

    def close(self) -> None:
        ended, self._scope = self._scope, 0
        self._end(ended)

    def _begin(self) -> int:
        return int(self._module.scope_begin(*self._device, False)) if self._module is not None else 0

    def _end(self, scope: int) -> tuple[int, ...] | None:
        return self._module.scope_end(scope) if scope and self._module is not None else None


def _native() -> Any | None:
    try:
        return native()
    except ImportError:
        return None
