"""The results of a source of figures: at one moment (Reading), and over a span of time (Figures)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from .devices import Device

OTHERS_WHILE_SUSPENDED = "; after and the peak include what others allocated or freed while it was suspended"
OTHERS_WHILE_AWAITING = "; in a coroutine: all figures include what other tasks did while it waited"

# What an ended span is kept as: (allocated, freed, peak bytes, …) and then whatever its source needs to work out
# Figures. Nothing in it but numbers, strings and such tuples: Python's garbage collector lets go of these, so that
# ten thousand results that are kept cost the program nothing at its collections.
Raw = tuple[Any, ...]


class Reading(NamedTuple):
    """A device's memory at one moment, in bytes. Which memory that is says the source's `basis`."""

    allocated_bytes: int
    reserved_bytes: int
    max_allocated_bytes: int
    max_reserved_bytes: int
    active_bytes: int
    inactive_bytes: int


class Own(NamedTuple):
    """What a scope's own thread and context did while it ran; frees are of blocks that it allocated itself."""

    alloc_count: int
    free_count: int
    alloc_bytes: int
    free_bytes: int
    peak_bytes: int


@dataclass
class Figures:
    """A finished span. `allocated_bytes` and `freed_bytes` are sums over all threads; None counts are unknown."""

    before: Reading
    after: Reading
    peak_bytes: int
    peak_is_exact: bool
    allocated_bytes: int
    freed_bytes: int
    basis_reason: str
    created: int | None = None
    deleted: int | None = None
    own: Own | None = None


class Span(Protocol):
    """Something that was begun, and is ended once."""

    def end(self) -> Raw: ...


class Source(Protocol):
    """Where figures of one device come from. `basis`: "exact" (allocator events), "framework" or "host"."""

    device: Device

    @property
    def basis(self) -> str: ...
    @property
    def basis_reason(self) -> str: ...
    def read(self) -> Reading: ...
    def begin(self, in_context: bool = False) -> Span: ...
    def figures(self, raw: Raw) -> Figures: ...
    def start_bytes(self, raw: Raw) -> int: ...
    def own_begin(self) -> int: ...
    def own_switch(self, scope: int, running: bool) -> None: ...
    def own_end(self, scope: int) -> Own | None: ...


class NoOwn:
    """The half of a source that cannot tell whose an allocation is."""

    def own_begin(self) -> int:
        return 0

    def own_switch(self, scope: int, running: bool) -> None: ...

    def own_end(self, scope: int) -> Own | None:
        return None


class SegmentedSpan:
    """A span that counts only while its generator or coroutine runs: a sum of spans, each from resume to suspend.

    What others do while it is suspended is in none of them. Only its own figures need one scope for all, since a block
    may be made in one segment and freed in another.
    """

    __slots__ = ("_source", "_own_scope", "_segment", "_total", "_has_others")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._own_scope = source.own_begin()
        self._segment: Span | None = None
        self._total: Figures | None = None
        self._has_others = False

    def resume(self) -> None:
        self._source.own_switch(self._own_scope, True)
        self._segment = self._source.begin()

    def suspend(self) -> None:
        if self._segment is None:
            return
        raw, self._segment = self._segment.end(), None
        self._source.own_switch(self._own_scope, False)
        figures = self._source.figures(raw)
        if self._total is None:
            self._total = figures
        else:
            self._has_others |= figures.before.allocated_bytes != self._total.after.allocated_bytes
            self._total = _joined(self._total, figures)

    def end(self) -> Raw:
        if self._total is None:  # it never ran
            self.resume()
        self.suspend()
        f = self._total
        assert f is not None
        own = self._source.own_end(self._own_scope)
        reason = f.basis_reason + (OTHERS_WHILE_SUSPENDED if self._has_others else "")
        flat = (tuple(f.before), tuple(f.after), f.peak_is_exact, reason, f.created, f.deleted)
        return f.allocated_bytes, f.freed_bytes, f.peak_bytes, "segments", *flat, None if own is None else tuple(own)


def figures_of(source: Source, raw: Raw) -> Figures:
    """The figures of an ended span of either kind."""
    if len(raw) < 4 or raw[3] != "segments":
        return source.figures(raw)
    allocated, freed, peak, _, before, after, exact, reason, created, deleted, own = raw
    own = None if own is None else Own(*own)
    return Figures(Reading(*before), Reading(*after), peak, exact, allocated, freed, reason, created, deleted, own)


def start_bytes_of(source: Source, raw: Raw) -> int:
    """What was allocated when an ended span of either kind began: figures_of().before, for less."""
    is_joined = len(raw) > 3 and raw[3] == "segments"
    return int(raw[4][0]) if is_joined else source.start_bytes(raw)


def _joined(first: Figures, second: Figures) -> Figures:
    inexact = first if not first.peak_is_exact else second
    return Figures(
        before=first.before,
        after=second.after,
        peak_bytes=max(first.peak_bytes, second.peak_bytes),
        peak_is_exact=first.peak_is_exact and second.peak_is_exact,
        allocated_bytes=first.allocated_bytes + second.allocated_bytes,
        freed_bytes=first.freed_bytes + second.freed_bytes,
        basis_reason=inexact.basis_reason,
        created=_sum(first.created, second.created),
        deleted=_sum(first.deleted, second.deleted),
    )


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
