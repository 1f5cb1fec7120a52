"""Figures of PyTorch's caching allocator, without a probe."""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from .devices import Device
from .spans import Figures, NoOwn, Raw, Reading


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
    marks: tuple[int, ...] = ()  # highest values of several counters, which only a reset can lower

    def reading(self) -> Reading:
        """Inactive is what is cached and unused: reserved less active."""
        inactive = max(self.reserved - self.active, 0)
        return Reading(self.allocated, self.reserved, self.max_allocated, self.max_reserved, self.active, inactive)


_bytes_of = itemgetter("current", "peak", "allocated", "freed")
_MARKS = (
    ("allocated_bytes", "all"), ("reserved_bytes", "all"), ("active_bytes", "all"), ("requested_bytes", "all"),
    ("allocation", "all"), ("segment", "all"), ("inactive_split_bytes", "all"), ("allocated_bytes", "small_pool"),
    ("allocated_bytes", "large_pool"),
)  # fmt: skip
LOWER_BOUND = "the peak is a lower bound: the device was higher before, and its peak did not rise"
_RESET = "the program reset the allocator's counters, so these are lower bounds"


class FrameworkSource(NoOwn):
    """torch.cuda's counters of one device.

    Nothing is ever reset: the program's own max_memory_allocated() stays what it was. So a scope's peak is known where
    the device's highest mark rose during the scope, and else only that it was not above that mark. A reset by the
    program inside the scope hides what was before it: it is seen by any mark that fell, or by sums that no longer add
    up; where all marks have risen again nothing tells of it, and `basis_reason` says so.
    """

    basis = "framework"

    def __init__(self, device: Device, why: str) -> None:
        from .._core.torch import require_torch

        self.device = device
        self.basis_reason = f"counters of PyTorch's caching allocator, since {why}"
        self._cuda = require_torch("reading GPU memory").cuda

    def stats(self) -> Stats:
        """The allocator's counters now; zeros before the program first used the device."""
        index = self.device.index
        nested = self._cuda.memory_stats_as_nested_dict(index) if index >= 0 else None
        if not nested:
            return Stats()
        allocated, highest, sum_allocated, sum_freed = _bytes_of(nested["allocated_bytes"]["all"])
        reserved, blocks = nested["reserved_bytes"]["all"], nested["allocation"]["all"]
        active = nested["active_bytes"]["all"]["current"]
        return Stats(
            allocated, reserved["current"], highest, reserved["peak"], active, sum_allocated, sum_freed,
            blocks["allocated"], blocks["freed"],
            tuple(nested[name][pool]["peak"] if name in nested else 0 for name, pool in _MARKS),
        )  # fmt: skip

    def read(self) -> Reading:
        return self.stats().reading()

    def begin(self, in_context: bool = False) -> FrameworkSpan:
        return FrameworkSpan(self)

    def start_bytes(self, raw: Raw) -> int:
        return Stats(*raw[3]).reading().allocated_bytes

    def figures(self, raw: Raw) -> Figures:
        allocated, freed, peak, first, last = raw
        before, after = Stats(*first), Stats(*last)
        exact, reason = self._judge(before, after)
        created, deleted = self._blocks(before, after)
        return Figures(
            before=before.reading(),
            after=after.reading(),
            peak_bytes=peak,
            peak_is_exact=exact,
            allocated_bytes=allocated,
            freed_bytes=freed,
            basis_reason=f"{self.basis_reason}; {reason}",
            created=created,
            deleted=deleted,
        )

    # What the counters of another framework tell otherwise.

    def between(self, before: Stats, after: Stats) -> tuple[int, int, int]:
        """Bytes allocated and freed, and the highest that is known to have been reached."""
        allocated = _grown(before.sum_allocated, after.sum_allocated)
        return allocated, _grown(before.sum_freed, after.sum_freed), _peak(before, after)[0]

    def _judge(self, before: Stats, after: Stats) -> tuple[bool, str]:
        """Whether the peak is exact, in words too."""
        exact = _peak(before, after)[1]
        if _was_reset(before, after):
            return exact, _RESET
        if exact:
            return exact, "the peak is exact unless the program reset the allocator's peaks"
        return exact, LOWER_BOUND

    def _blocks(self, before: Stats, after: Stats) -> tuple[int | None, int | None]:
        return _grown(before.alloc_count, after.alloc_count), _grown(before.free_count, after.free_count)


class FrameworkSpan:
    """The allocator's counters before and after. Sums of bytes and blocks only ever grow, so differences are exact."""

    __slots__ = ("_source", "_before")

    def __init__(self, source: FrameworkSource) -> None:
        self._source = source
        self._before = source.stats()

    def end(self) -> Raw:
        before, after = self._before, self._source.stats()
        return (*self._source.between(before, after), tuple(before), tuple(after))


def _grown(before: int, after: int) -> int:
    # Less than before: the program reset its counters meanwhile, and what was before that is gone.
    return after - before if after >= before else after


def _peak(before: Stats, after: Stats) -> tuple[int, bool]:
    """(the highest that is known to have been reached in between, whether it is the peak)."""
    seen, reset = max(before.allocated, after.allocated), _was_reset(before, after)
    if after.max_allocated != before.max_allocated:  # after a reset the new mark was reached since, too
        return max(seen, after.max_allocated), not reset
    return seen, seen == after.max_allocated and not reset


def _was_reset(before: Stats, after: Stats) -> bool:
    """Whether peaks or sums are known to have been reset in between."""
    if any(new < old for old, new in zip((before.max_allocated, before.max_reserved, *before.marks),
                                         (after.max_allocated, after.max_reserved, *after.marks))):  # fmt: skip
        return True
    # What is allocated less all that was ever allocated and not freed is a constant, until the sums are set to 0.
    rest = [s.allocated - s.sum_allocated + s.sum_freed for s in (before, after)]
    sums = [(s.sum_allocated, s.sum_freed, s.alloc_count, s.free_count) for s in (before, after)]
    return rest[0] != rest[1] or any(new < old for old, new in zip(*sums))
