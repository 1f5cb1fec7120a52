"""The probe's exact counters as the live parts use them: absent without a probe, and never an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from .._core.native import native
from .attaching import attach_by_itself

_said: dict[str | tuple[str, type[Warning], int], int] = {}  # what warnings remembers
TRIES = 8  # for a moment in which no thread is inside the allocator
_RUN_IT = "run the program under `gpumemprof run` or call gpumemprof.attach() for exact figures"
UNSETTLED = "other threads allocated during every attempt to read the allocator's and the probe's counters together"


class ExactCounters(NamedTuple):
    """Of one device since counting began. `untracked_count` > 0: the others are lower bounds."""

    live_bytes: int
    alloc_count: int
    free_count: int
    alloc_bytes: int
    free_bytes: int
    unknown_free_count: int
    untracked_count: int


_NOTHING = ExactCounters(*(0,) * 7)


def exact_available(attach: bool = True) -> tuple[bool, str]:
    """Whether the probe counts in this process, from now on at the latest; and if not, why. `attach`: where it is not here
    it may be attached, which is for PyTorch."""
    try:
        module = native()
    except ImportError as error:
        warnings.warn_explicit(f"figures are not exact: {error}", RuntimeWarning, "gpumemprof", 1, registry=_said)
        return False, str(error)
    if module.probe_library() is None:
        why_not = attach_by_itself() if attach else "none was attached"
        if why_not:
            return False, f"no probe is in this process ({why_not}): {_RUN_IT}"
    if not module.can_count():
        return False, f"the probe in this process ({module.probe_library()}) is too old to count"
    if not module.counting_begin():
        return False, "the probe in this process cannot count (old kernel, processor or memory limit)"
    return True, ""


def read_counters(device_type: int, device_index: int) -> ExactCounters | None:
    """The counters of a device (c10::DeviceType, index); None if nothing is known of it yet."""
    module = _native()
    values = module.counters(device_type, device_index) if module is not None else None
    return ExactCounters(*values) if values is not None else None


class _Opened(NamedTuple):
    """A scope, the counters when it was opened, and the allocator's own figure of that moment where it is known."""

    scope: int
    counters: ExactCounters | None
    allocated_bytes: int | None


class PeakWatch:
    """The peak of a device between two looks, from the probe, with no moment left out. One thread at a time.

    Where `allocated_now` is given the figure wanted is the allocator's, which has the blocks in it that are older than
    counting: that figure at the start of the interval, and how far the probe's live bytes rose. `device_index` is asked
    at every look: it may become known only when the program uses the device.
    """

    def __init__(
        self, device_type: int, device_index: Callable[[], int], allocated_now: Callable[[], int | None] | None = None
    ) -> None:
        self._type, self._index = device_type, device_index
        self._allocated_now = allocated_now
        self._module = _native()
        self._open = self._begin()

    def take(self) -> tuple[int | None, str | None]:
        """(the peak since the last call or the beginning, None); (None, why) where it is not told exactly."""
        opened, self._open = self._open, self._begin()  # the next one opens before this one closes
        result = self._end(opened.scope)
        if result is None:
            return None, "the probe had no scope open on the device"
        start, _, peak = result[:3]
        if result[8]:
            return None, f"{result[8]} blocks could not be followed"
        if self._allocated_now is None:
            return int(peak), None
        if opened.allocated_bytes is None:
            return None, UNSETTLED
        first, last = opened.counters, self._open.counters
        older = (last.unknown_free_count if last else 0) - (first.unknown_free_count if first else 0)
        if older:
            return None, f"{older} older blocks were freed at an unknown time"
        return int(opened.allocated_bytes + peak - start), None

    def close(self) -> None:
        ended, self._open = self._open.scope, _Opened(0, None, None)
        self._end(ended)

    def _begin(self) -> _Opened:
        index = self._index()
        if self._module is None or index < 0:
            return _Opened(0, None, None)
        for _ in range(TRIES):
            before = read_counters(self._type, index)
            scope = int(self._module.scope_begin(self._type, index, False))
            if self._allocated_now is None:
                return _Opened(scope, before, None)
            # Both figures are of one moment if nothing was counted between two looks around them.
            allocated = self._allocated_now()
            after = read_counters(self._type, index)
            # A device of which nothing was known becomes known with its first scope: still zeros.
            if (before or _NOTHING) == (after or _NOTHING):
                return _Opened(scope, after, allocated)
            self._end(scope)
        return _Opened(int(self._module.scope_begin(self._type, index, False)), after, None)

    def _end(self, scope: int) -> tuple[int, ...] | None:
        return self._module.scope_end(scope) if scope and self._module is not None else None


def _native() -> Any | None:
    try:
        return native()
    except ImportError:
        return None
