"""Which modules to checkpoint: enough bytes for the least time. Exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .._core.columns import side_by_side

# Sums that are kept at most. Equal modules make few; beyond it times are rounded up and the answer says so.
_MOST_SUMS = 200_000


class Item(NamedTuple):
    """A module: what checkpointing it saves, and what computing it again takes."""

    name: str
    saved_bytes: int
    time_ns: int


class Choice(NamedTuple):
    items: tuple[Item, ...]
    saved_bytes: int
    time_ns: int
    is_exact: bool


class _Sum(NamedTuple):
    saved_bytes: int
    time_ns: int
    counts: tuple[int, ...]  # of each group so far, its cheapest items


def choose(items: Sequence[Item], needed_bytes: int) -> Choice | None:
    """The items that save `needed_bytes` or more in the least time, of these those that save most; None where all of
    them together do not.

    Items that save the same differ in time alone, so of each such group the cheapest are taken first: what is left
    open is how many. Over these, all sums that no other one beats in both are kept.
    """
    groups: dict[int, list[Item]] = {}
    for item in items:
        if item.saved_bytes > 0:
            groups.setdefault(item.saved_bytes, []).append(item)
    for group in groups.values():
        group.sort(key=lambda item: (item.time_ns, item.name))
    if sum(item.saved_bytes for group in groups.values() for item in group) < needed_bytes:
        return None
    unit_ns = 1
    while True:
        found = _search(list(groups.values()), needed_bytes, unit_ns)
        if found is not None:
            break
        unit_ns *= 10  # too many sums: coarser times
    chosen = [group[i] for group, count in side_by_side(groups.values(), found.counts) for i in range(count)]
    chosen.sort(key=lambda item: items.index(item))
    return Choice(
        tuple(chosen), sum(i.saved_bytes for i in chosen), sum(i.time_ns for i in chosen), is_exact=unit_ns == 1
    )


def _search(groups: list[list[Item]], needed_bytes: int, unit_ns: int) -> _Sum | None:
    """None if there are too many sums."""
    sums = [_Sum(0, 0, ())]
    for group in groups:
        grown = []
        for count in range(len(group) + 1):
            time = sum(-(-item.time_ns // unit_ns) for item in group[:count])
            saved = group[0].saved_bytes * count
            # More than is needed is worth no time of its own: such sums count as what is needed.
            grown += [_Sum(s.saved_bytes + saved, s.time_ns + time, (*s.counts, count)) for s in sums]
        sums = _best(grown, needed_bytes)
        if len(sums) > _MOST_SUMS:
            return None
    enough = [s for s in sums if s.saved_bytes >= needed_bytes]
    return min(enough, key=lambda s: (s.time_ns, -s.saved_bytes))


def _best(sums: list[_Sum], needed_bytes: int) -> list[_Sum]:
    """Those that no other beats: least time first, each one saves more than all before it."""
    sums.sort(key=lambda s: (s.time_ns, -s.saved_bytes))
    kept: list[_Sum] = []
    most = -1
    for one in sums:
        if one.saved_bytes > most:
            kept.append(one)
            most = one.saved_bytes
            if most >= needed_bytes:
                break  # what comes later takes more time, and more is not needed
    return kept
