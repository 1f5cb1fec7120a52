"""The list of a profiler's results, each created when it is first accessed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, overload

from .._counting.spans import Raw, Source
from .results import ProfileResult

_RawResult = tuple[Raw, int]


class Results(list[ProfileResult]):
    """A list of ProfileResult.

    What is stored until then is the measurement, a tuple of numbers and strings. Making objects of ten thousand of
    them would cost more than measuring did, and the garbage collector would walk over them for as long as they are
    kept.
    """

    def __init__(self, results: Iterable[ProfileResult] = ()) -> None:
        super().__init__(results)
        # A tuple that held the source would be walked over; a number in its place is not. No number is used twice, so
        # that who reads while another thread clears never takes one source for another.
        self._sources: dict[int, Source] = {}
        self._number = 0
        self._latest: Source | None = None

    def add(self, ended: Raw, source: Source) -> None:
        """Appends a measurement that ended."""
        if self._latest is not source:
            self._number += 1
            self._sources[self._number] = self._latest = source
        self.append((ended, self._number))  # type: ignore[arg-type]

    def clear(self) -> None:
        # Whoever clears begins a new source: these would pile up.
        super().clear()
        self._sources.clear()
        self._latest = None

    def _made(self, index: int) -> ProfileResult:
        item: Any = list.__getitem__(self, index)
        if type(item) is not tuple:
            return item  # type: ignore[no-any-return]
        source = self._sources.get(item[1])
        if source is None:
            raise IndexError("list index out of range")  # cleared meanwhile
        result = ProfileResult.of(item[0], source)
        if index < list.__len__(self) and list.__getitem__(self, index) is item:  # not trimmed meanwhile
            list.__setitem__(self, index, result)
        return result

    def make_all(self) -> list[ProfileResult]:
        """All of them, as a plain list."""
        return [self._made(index) for index in range(len(self))]

    @overload
    def __getitem__(self, index: SupportsIndex) -> ProfileResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[ProfileResult]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._made(i) for i in range(*index.indices(len(self)))]
        number = index.__index__()
        return self._made(number if number >= 0 else number + len(self))

    def __iter__(self) -> Iterator[ProfileResult]:
        index = 0
        while index < len(self):
            try:
                yield self._made(index)
            except IndexError:  # trimmed or cleared meanwhile
                return
            index += 1

    def __reversed__(self) -> Iterator[ProfileResult]:
        return reversed(self.make_all())

    def __contains__(self, item: object) -> bool:
        return item in self.make_all()

    def __eq__(self, other: object) -> bool:
        return self.make_all() == (other.make_all() if isinstance(other, Results) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __add__(self, other: Any) -> Any:
        return self.make_all() + list(other)

    def __repr__(self) -> str:
        return repr(self.make_all())

    def copy(self) -> list[ProfileResult]:
        return self.make_all()

    def index(self, *args: Any) -> int:
        return self.make_all().index(*args)

    def pop(self, index: SupportsIndex = -1) -> ProfileResult:
        result = self[index]
        super().pop(index)
        return result

    def sort(self, **options: Any) -> None:
        self[:] = sorted(self.make_all(), **options)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return list, (self.make_all(),)
