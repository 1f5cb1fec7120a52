"""Figures of PyTorch's own caching allocator, where no probe counts its events."""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from ._spans import Figures, NoOwn, Raw, Reading
from .devices import Device


class Stats(NamedTuple):
    """Those of the allocator's counters that are used: bytes, and counts of blocks."""

    allocated: int = 0
    reserved: int = 0
    max_allocated: int = 0
    max_reserved: int = 0
    active: int = 0
    sum_allocated: int = 0
    sum_freed: int = 0
    alloc_count: int = 0
    free_count: int = 0

    def reading(self) -> Reading:
        """Inactive is what is cached and unused: reserved less active."""
        inactive = max(self.reserved - self.active, 0)
        return Reading(self.allocated, self.reserved, self.max_allocated, self.max_reserved, self.active, inactive)


_bytes_of = itemgetter("current", "peak", "allocated", "freed")


class FrameworkSource(NoOwn):
    """torch.cuda's counters of one device.

    Nothing is ever reset: the program's own max_memory_allocated() stays what it was. So a scope's peak is known where
    the device's highest mark rose during the scope, and else only that it was not above that mark.
    """

    basis = "framework"

    def __init__(self, device: Device, why: str) -> None:
        from ._torch import require_torch

        self.device = device
        self.basis_reason = f"counters of PyTorch's caching allocator, since {why}"
        self._cuda = require_torch("reading GPU memory").cuda

    def stats(self) -> Stats:
        """The allocator's counters now; zeros before the program first used the device."""
        nested = self._cuda.memory_stats_as_nested_dict(self.device.index)
        if not nested:
            return Stats()
        allocated, highest, sum_allocated, sum_freed = _bytes_of(nested["allocated_bytes"]["all"])
        reserved, blocks = nested["reserved_bytes"]["all"], nested["allocation"]["all"]
        active = nested["active_bytes"]["all"]["current"]
        return Stats(
            allocated, reserved["current"], highest, reserved["peak"], active, sum_allocated, sum_freed,
            blocks["allocated"], blocks["freed"],
        )  # fmt: skip

    def read(self) -> Reading:
        return self.stats().reading()

    def begin(self, in_context: bool = False) -> FrameworkSpan:
        return FrameworkSpan(self)

    def figures(self, raw: Raw) -> Figures:
        allocated, freed, peak, first, last = raw
        before, after = Stats(*first), Stats(*last)
        exact = _peak(before, after)[1]
        reason = self.basis_reason
        if not exact:
            reason += "; the peak is at least this: the device was once higher, and its highest mark did not rise"
        return Figures(
            before=before.reading(),
            after=after.reading(),
            peak_bytes=peak,
            peak_is_exact=exact,
            allocated_bytes=allocated,
            freed_bytes=freed,
            basis_reason=reason,
            created=_grown(before.alloc_count, after.alloc_count),
            deleted=_grown(before.free_count, after.free_count),
        )


class FrameworkSpan:
    """The allocator's counters before and after. Sums of bytes and blocks only ever grow, so differences are exact."""

    __slots__ = ("_source", "_before")

    def __init__(self, source: FrameworkSource) -> None:
        self._source = source
        self._before = source.stats()

    def end(self) -> Raw:
        before, after = self._before, self._source.stats()
        allocated = _grown(before.sum_allocated, after.sum_allocated)
        freed = _grown(before.sum_freed, after.sum_freed)
        return allocated, freed, _peak(before, after)[0], tuple(before), tuple(after)


def _grown(before: int, after: int) -> int:
    # Less than before: the program reset its counters meanwhile, and what was before that is gone.
    return after - before if after >= before else after


def _peak(before: Stats, after: Stats) -> tuple[int, bool]:
    """(the highest that is known to have been reached in between, whether it is the peak)."""
    if after.max_allocated > before.max_allocated:
        return after.max_allocated, True
    seen = max(before.allocated, after.allocated)
    if after.max_allocated < before.max_allocated:  # reset in between: the new mark was reached since
        return max(seen, after.max_allocated), False
    return seen, seen == after.max_allocated
