"""The shortest way from a name of the program to each of its tensors. Only `gc.get_referents` is asked, and dictionaries,
lists and the like of exactly Python's own types are looked into: no code of the program runs."""

from __future__ import annotations

import gc
import sys
import time
import types
from collections import deque
from functools import _lru_cache_wrapper
from typing import Any, NamedTuple

from .roots import Root, is_own, namespaces
from .unseen import module_of_class, mro_of, space_of, space_of_class

# By id: a metaclass of the program's may have an `__eq__`.
_SKIPPED = frozenset(map(id, (
    types.ModuleType, types.CodeType, types.BuiltinFunctionType, str, bytes, int, float, complex, bool, type(None), range,
)))  # fmt: skip


class Step(NamedTuple):
    """One object on the way; `before` is the step that led to it, None for what a name stands for."""

    value: object
    before: Step | None
    root: Root


class Walk:
    """`tensors`: by id, the step of each tensor that was reached, nearest first. `why_incomplete` is empty unless the
    time ran out."""

    def __init__(self, tensor_type: type, deadline: float) -> None:
        self.tensors: dict[int, Step] = {}
        self.why_incomplete = ""
        self._tensor_type = tensor_type
        self._deadline = deadline
        self._spaces = namespaces()
        # What is ours, and what is known: objects of the walk itself would lead to everything.
        self._seen: set[int] = {id(self), id(self.__dict__), id(self.tensors), id(sys.modules), id(self._spaces)}
        self._seen.update(self._spaces)

    def walk(self, roots: list[Root]) -> None:
        waiting: deque[Step] = deque()
        self._seen.update((id(roots), id(waiting)))
        for root in roots:
            self._reach(Step(root.value, None, root), waiting)
        count = 0
        while waiting:
            step = waiting.popleft()
            count += 1
            if count % 1024 == 0 and time.thread_time() > self._deadline:
                self.why_incomplete = "the walk over the program's objects took too long"
                return
            for value in gc.get_referents(step.value):
                self._reach(Step(value, step, step.root), waiting)

    def _reach(self, step: Step, waiting: deque[Step]) -> None:
        value = step.value
        kind = type(value)
        if id(kind) in _SKIPPED or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if issubclass(kind, self._tensor_type):
            self.tensors.setdefault(id(value), step)
        elif issubclass(kind, types.ModuleType) or issubclass(kind, (Step, Root, Walk)):
            return
        elif issubclass(kind, type) and not is_own_class(value):
            return
        waiting.append(step)


def is_own_class(value: Any) -> bool:
    """A class of the program's: its attributes may hold something."""
    name = module_of_class(value)
    module = sys.modules.get(name) if name is not None else None
    return name == "__main__" or (type(module) is types.ModuleType and is_own(module.__dict__.get("__file__")))


def way_to(step: Step) -> list[object]:
    """From what the name stands for to the object itself."""
    way: list[object] = []
    at: Step | None = step
    while at is not None:
        way.append(at.value)
        at = at.before
    return way[::-1]


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
