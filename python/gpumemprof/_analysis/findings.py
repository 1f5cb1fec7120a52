"""A list with the reason why it is empty."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


class Findings(list[T]):
    """An ordinary list; `unknown` is "" where the question was answered, else the reason why it could not be: an
    empty list with a reason does not mean that nothing is wrong."""

    def __init__(self, items: Iterable[T] = (), unknown: str = "") -> None:
        super().__init__(items)
        self.unknown = unknown
