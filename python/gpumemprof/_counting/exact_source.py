"""Figures from allocator events, counted by the probe in this process."""

from __future__ import annotations

import os
import sys
from typing import Any

from .._core.native import native
from .devices import CPU, Device, JaxHost
from .framework_source import FrameworkSource, Stats
from .probe_counters import TRIES, UNSETTLED
from .spans import Figures, Own, Raw, Reading

Counters = tuple[int, ...]
_NOTHING: Counters = (0,) * 7  # of a device on which nothing was allocated yet
_LIVE, _ALLOCS, _FREES, _ALLOC_BYTES, _FREE_BYTES, _UNKNOWN_FREES, _UNTRACKED = range(7)
# In what ends a scope: start, end and peak of the device, then the own figures in Own's order.
_OWN, _MISSED, _FLAGS = slice(3, 8), 8, 9
_THREAD_ONLY = 2  # GPUMEMPROF_SCOPE_THREAD_ONLY
_NO_DEVICE = "the device was first used during the call: the peak is the allocator's peak since"
_FORKED = (
    "the process forked within: figures are of this child alone, since then, and the peak is the higher of before and "
    "after"
)
_began = "counting began"
_forks = 0  # that lie between the first of these processes and this one


def _others_note(device: Device) -> str:
    """Whose memory of the host it is, where the program has another framework."""
    if isinstance(device, JaxHost):
        return "; only JAX's memory: the program had not imported PyTorch"
    others = [name for name, module in (("JAX", "jax"), ("TensorFlow", "tensorflow")) if module in sys.modules]
    if not others or device.code != CPU.code:
        return ""
    are = "is" if len(others) == 1 else "are"
    return f"; only PyTorch's memory: {' and '.join(others)} {are} recorded by gpumemprof run"


def _after_fork() -> None:
    global _began, _forks
    _began = "counting restarted in this forked child"
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class ExactSource:
    """The probe's counters of one device: include/gpumemprof/gpumemprof.h says what each of them is."""

    basis = "exact"

    def __init__(self, device: Device, framework: Any = None) -> None:
        """`framework` has the same device's counters of another framework than PyTorch: stats() and read()."""
        self.device = device
        self.code = device.code
        self.basis_reason = (
            f"every allocation and free of blocks allocated since {_began}"
        )
        if device.is_cpu and framework is None:
            self.basis_reason += "; older blocks are not included" + _others_note(device)
        else:
            self.basis_reason += "; the allocator's figures include older blocks"
        self.native = native()
        self.highest = 0
        # PyTorch's CPU has no pool: what is allocated is all that there is to know of it.
        self.framework = framework or (None if device.is_cpu else FrameworkSource(device, ""))

    def counters(self) -> Counters:
        index = 0 if self.device.is_cpu else self.device.index
        return (self.native.counters(self.code, index) if index >= 0 else None) or _NOTHING

    def both(self) -> tuple[Counters, Stats | None, bool]:
        """The probe's counters, the framework's, and whether the two are of one moment.

        They are where nothing was counted between two looks around. The framework's cannot be kept from one event to
        the next: empty_cache, a reset and record_stream change them without any.
        """
        first = self.counters()
        if self.framework is None:
            return first, None, True
        for _ in range(TRIES):
            stats = self.framework.stats()
            last, first = first, self.counters()
            if first == last:
                return first, stats, True
        return first, stats, False

    def scope_begin(self, in_context: bool) -> int:
        """0 also for a GPU that the program has not used yet, and whose index is not known so."""
        index = 0 if self.device.is_cpu else self.device.index
        scope: int = self.native.scope_begin(self.code, index, in_context) if index >= 0 else 0
        return scope

    def read(self) -> Reading:
        if self.framework is not None:
            reading: Reading = self.framework.read()
            return reading
        live_bytes = self.counters()[_LIVE]
        self.highest = max(self.highest, live_bytes)
        return _reading(live_bytes, self.highest)

    def begin(self, in_context: bool = False) -> ExactSpan:
        return ExactSpan(self, in_context)

    def start_bytes(self, raw: Raw) -> int:
        first, result, stats = raw[3], raw[5], raw[6]
        if stats is not None:
            return Stats(*stats).reading().allocated_bytes
        return int(first[_LIVE] if result is None else result[0])

    def figures(self, raw: Raw) -> Figures:
        allocated, freed, peak, first, last, result, stats, end_stats, highest, end_highest, why_not = raw
        unknown_frees = max(last[_UNKNOWN_FREES] - first[_UNKNOWN_FREES], 0)
        notes = _notes(result, unknown_frees) if why_not is None else [why_not]
        if stats is None:
            start, end = (first[_LIVE], last[_LIVE]) if result is None else result[:2]
            before, after = _reading(start, highest), _reading(end, end_highest)
        else:
            before, after = Stats(*stats).reading(), Stats(*end_stats).reading()
        return Figures(
            before=before,
            after=after,
            peak_bytes=peak,
            peak_is_exact=not notes,
            allocated_bytes=max(allocated, 0),
            freed_bytes=max(freed, 0),
            basis_reason="; ".join([self.basis_reason, *notes]),
            created=max(last[_ALLOCS] - first[_ALLOCS], 0),
            deleted=max(last[_FREES] - first[_FREES], 0) + unknown_frees,
            own=None if result is None else Own(*result[_OWN]),
        )

    # A scope of its own figures alone, which begins suspended.
    def own_begin(self) -> int:
        scope = self.scope_begin(False)
        self.native.scope_switch_out(scope)
        return scope

    def own_switch(self, scope: int, running: bool) -> None:
        (self.native.scope_switch_in if running else self.native.scope_switch_out)(scope)

    def own_end(self, scope: int) -> Own | None:
        result = self.native.scope_end(scope)
        return None if result is None else Own(*result[_OWN])


class ExactSpan:
    """A scope of the probe, and the counters around it. Kept as they came; reading them out comes later, if ever."""

    __slots__ = ("_source", "_scope", "_first", "_stats", "_settled", "_highest", "_forks")

    def __init__(self, source: ExactSource, in_context: bool) -> None:
        self._source = source
        self._first, self._stats, self._settled = source.both()
        self._highest = source.highest
        self._scope = source.scope_begin(in_context)
        self._forks = _forks

    def end(self) -> Raw:
        source, first, stats = self._source, self._first, self._stats
        is_forked = self._forks != _forks
        if is_forked:  # the child counts from zero
            first, self._highest, source.highest = _NOTHING, 0, 0
        result = source.native.scope_end(self._scope)
        last = source.counters()
        peak = max(first[_LIVE], last[_LIVE]) if result is None else result[2]
        if peak > source.highest:
            source.highest = peak
        end_stats, why_not = None, _FORKED if is_forked else None
        if stats is not None:
            # As torch.cuda counts it: with the blocks that are older than counting.
            last, after, settled = source.both()
            assert after is not None
            rise = 0 if result is None else result[2] - result[0]
            peak = max(after.allocated, stats.allocated + rise)
            if result is None and not stats.max_allocated and after.max_allocated:
                peak, why_not = after.max_allocated, _NO_DEVICE
            elif result is not None and not (self._settled and settled and result[:2] == (first[_LIVE], last[_LIVE])):
                why_not = f"the peak is approximate: {UNSETTLED}"
            stats, end_stats = tuple(stats), tuple(after)  # type: ignore[assignment]
        allocated, freed = last[_ALLOC_BYTES] - first[_ALLOC_BYTES], last[_FREE_BYTES] - first[_FREE_BYTES]
        highest = self._highest, source.highest
        return allocated, freed, peak, first, last, result, stats, end_stats, *highest, why_not


def _reading(live_bytes: int, highest: int) -> Reading:
    highest = max(highest, live_bytes)
    return Reading(live_bytes, live_bytes, highest, highest, live_bytes, 0)


def _notes(result: tuple[int, ...] | None, unknown_frees: int) -> list[str]:
    """What makes a span's figures less than exact, in words."""
    notes = []
    if result is None:
        notes.append("the peak is the higher of before and after: the probe had no free scope, or the process forked")
    elif result[_MISSED]:
        notes.append(f"{result[_MISSED]} blocks could not be followed, so these are lower bounds")
    if unknown_frees:
        notes.append(f"{unknown_frees} older blocks were freed; their bytes are not included")
    if result is not None and result[_FLAGS] & _THREAD_ONLY:
        notes.append("own figures cover the whole thread: the probe does not know this Python's contexts")
    return notes
