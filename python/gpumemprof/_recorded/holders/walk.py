"""The shortest way from a name of the program to each of its tensors. Objects are traversed as Python's collector does it, and dictionaries,
lists and the like of exactly Python's own types are looked into: no code of the program runs."""

from __future__ import annotations

import sys
import types
from functools import _lru_cache_wrapper
from typing import Any, NamedTuple

from ... import _marks
from .roots import Root, Roots, add_frames, add_modules, is_own, modules
from .unseen import module_of_class, mro_of, space_of, space_of_class

_SKIPPED = (
    types.ModuleType, types.CodeType, types.BuiltinFunctionType, str, bytes, int, float, complex, bool, type(None), range,
)  # fmt: skip


class Way(NamedTuple):
    """`values`: from what the name of `root` stands for to the object itself."""

    values: list[Any]
    root: Root


class Walk:
    """`why_incomplete` is empty unless the time ran out."""

    def __init__(self, kind: type, deadline: float, at_end: bool) -> None:
        self.why_incomplete = ""
        self._deadline, self._at_end = deadline, at_end
        self._roots = Roots()
        self._modules = modules()
        # Spaces: one function would lead to all that its module has. Objects of the walk itself would lead to everything.
        stops = [self, self.__dict__, sys.modules, *(one.space for one in self._modules)]
        self._walker = _marks.walker(kind, _SKIPPED, (types.ModuleType, Way, Walk, Roots), stops, is_own_class)

    def walk_program(self) -> None:
        """From the names of the program, then from what its libraries' functions that run were given: a variable of a
        library is no name of the program's, however short the way from it."""
        add_frames(self._roots, True, self._at_end)
        add_modules(self._roots, self._modules, own=True)
        self._walk()
        add_frames(self._roots, False, self._at_end)
        self._walk()

    def walk_libraries(self) -> None:
        add_modules(self._roots, self._modules, own=False)
        self._walk()

    def _walk(self) -> None:
        if not _marks.walk(self._walker, self._roots.values, self._deadline):
            self.why_incomplete = "the walk over the program's objects took too long"

    def way_to(self, value: object) -> Way | None:
        """The shortest; None for what was not reached."""
        found = _marks.way(self._walker, value)
        return None if found is None else Way(found[1], self._roots[found[0]])


def is_own_class(value: Any) -> bool:
    """A class of the program's: its attributes may hold something."""
    name = module_of_class(value)
    module = sys.modules.get(name) if name is not None else None
    return name == "__main__" or (type(module) is types.ModuleType and is_own(module.__dict__.get("__file__")))


def key_in(space: object, value: object) -> str | None:
    """The name under which a dictionary has a value."""
    if not issubclass(type(space), dict):
        return None
    items: Any = dict.items(space)  # type: ignore[arg-type]
    for key, one in items:
        if one is value:
            return key if type(key) is str else None
    return None


def attribute_of(owner: object, following: list[object]) -> str | None:
    """Which attribute of `owner` leads on to the first of `following`, or, through its `__dict__`, to the second."""
    space = space_of(owner)
    if following and space is not None:
        if following[0] is space:
            return key_in(space, following[1]) if len(following) > 1 else None
        name = key_in(space, following[0])
        if name is not None:
            return name
    for kind in mro_of(type(owner)):
        for name, member in space_of_class(kind).items():
            if type(member) is types.MemberDescriptorType and following:
                try:
                    if member.__get__(owner) is following[0]:
                        return name
                except Exception:
                    continue
    return None


def is_cache(value: object) -> bool:
    return type(value) is _lru_cache_wrapper
