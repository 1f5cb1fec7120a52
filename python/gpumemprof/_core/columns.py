"""zip(…, strict=True), which Python has from 3.10 on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeVar, overload

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

_END: Any = object()


@overload
def side_by_side(a: Iterable[A], b: Iterable[B], /) -> Iterator[tuple[A, B]]: ...
@overload
def side_by_side(a: Iterable[A], b: Iterable[B], c: Iterable[C], /) -> Iterator[tuple[A, B, C]]: ...
def side_by_side(*columns: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Their items together; a ValueError where one ends before another."""
    for row in zip_longest(*columns, fillvalue=_END):
        if any(item is _END for item in row):
            raise ValueError("columns of different lengths")
        yield row
