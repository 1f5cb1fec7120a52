"""What a person would call the holder of a tensor, from the way that leads to it. Imports PyTorch."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import torch

from .roots import Function
from .tensor import backward_hooks_of
from .unseen import name_of_class, space_of
from .walk import Way, attribute_of, is_cache, is_own_class, key_in

_PARTS_OF_MODULE = ("_parameters", "_buffers", "_modules")
_CONTAINERS = ("list", "dict", "tuple", "set", "frozenset", "deque", "OrderedDict", "defaultdict", "Counter")
# What grows inside an entry of a deque: then its `maxlen` limits nothing.
_GROWING = frozenset(_CONTAINERS) - {"tuple", "frozenset", "dict"}
_FILLED = _GROWING | {"dict"}
# Attributes by which an object says how many entries its list, dict or the like may have. Not "max_len": texts have one.
_CAPACITIES = ("capacity", "maxlen", "maxsize", "max_size", "max_entries", "max_items", "max_history")
_CAPACITY_NAMES = frozenset(prefix + name for prefix in ("", "_") for name in _CAPACITIES)
_NO_LIMIT = 1 << 40
_COUNTED = (list, dict, set, deque, OrderedDict, defaultdict)  # Python's own, whose len() runs no code of the program


class Limit(NamedTuple):
    """`by`: the attribute that says it, "ListStorage.max_size"; empty: the deque's own `maxlen`."""

    container: Any
    most_entries: int
    by: str


class Name(NamedTuple):
    """`path`: "losses in train (train.py)". `owner` and `through` are as docs/schemas/holders.schema.json has them.
    `limited`: by a deque's `maxlen`, or by an object that says how many entries its list may have; None where nothing limits
    it. `object_id`: id of the list, dict or the like that `name` stands for or leads to first; 0 if there is none. `container`:
    the path of the innermost list, dict or the like that has objects of which `name` is an attribute; empty if there is none.
    `function`: the library's of which `name` is a variable; None if it is none."""

    path: str
    name: str
    owner: str
    through: tuple[str, ...]
    limited: Limit | None = None
    object_id: int = 0
    container: str = ""
    function: Function | None = None


def _is_metric(kind: type) -> bool:
    """Of torchmetrics, whose state has a reset()."""
    metric = getattr(sys.modules.get("torchmetrics.metric"), "__dict__", {}).get("Metric")
    return any(one is metric for one in kind.__mro__)


class _Reading:
    """Goes along a way once. What was found first stays where it is more telling: an exception's frame has variables of
    its own, an optimizer attributes."""

    def __init__(self, way: Way, hooked: set[int]) -> None:
        self.way, self.root = way
        self.hooked = hooked
        self.name, self.owner = self.root.name, "variable"
        self.through: list[str] = []
        self.limited: Limit | None = None
        self.object_id = 0
        self.container = ""
        self.is_settled = self.is_of_library = False

    def read(self) -> Name:
        for at, value in enumerate(self.way[:-1]):
            following = self.way[at + 1 :]
            kind, name = type(value), self.name
            if id(value) in self.hooked and not self.is_settled:
                if is_own_class(kind):  # History.losses says more than the variable that History is in
                    self._attribute(value, kind, following)
                self._settle("hook")
            if name_of_class(kind) in _CONTAINERS:
                if not self._is_namespace(at):
                    self._container(at, value, name_of_class(kind))
            elif not self.is_settled:
                self._look_at(value, kind, following)
            if self.name is not name:
                self.object_id = 0
        path = self._path()
        container = self.container if self.container != path else ""
        function = self.root.function if self.owner == "variable" else None
        return Name(path, self.name, self.owner, tuple(self.through), self.limited, self.object_id, container, function)

    def _path(self) -> str:
        by = "" if self.name == self.root.name else f", by {self.root.name}"
        return f"{self.name}{by} in {self.root.place}"

    def _container(self, at: int, value: Any, kind: str) -> None:
        if not self.through and kind in _FILLED:
            self.limited = self._limit(at, value)
        elif kind in _GROWING:
            self.limited = None
        self.object_id = self.object_id or id(value)
        if kind in _FILLED:
            self.container = self._path()
        self.through.append(kind)

    def _limit(self, at: int, value: Any) -> Limit | None:
        if type(value) is deque and value.maxlen is not None:
            return Limit(value, value.maxlen, "")
        if at == 0 or type(value) not in _COUNTED:
            return None
        owner = self.way[at - 2] if at > 1 and self._is_namespace(at - 1) else self.way[at - 1]
        if issubclass(type(owner), (type, types.FunctionType, torch.nn.Module)):  # a layer's capacity may be one for anything
            return None
        space = space_of(owner) or {}
        for name in [one for one in list(space) if type(one) is str and one in _CAPACITY_NAMES]:
            most = dict.get(space, name)
            if type(most) is int and 0 < most < _NO_LIMIT:
                return Limit(value, most, f"{name_of_class(type(owner))}.{name}")
        return None

    def _look_at(self, value: Any, kind: type, following: list[object]) -> None:
        if issubclass(kind, (BaseException, types.TracebackType)):
            self._settle("exception")
        elif is_cache(value):
            self._settle("cache")
        elif issubclass(kind, torch.optim.Optimizer):
            self._settle("optimizer")
        elif issubclass(kind, types.FunctionType):
            self._closure(value, following)
        elif issubclass(kind, torch.nn.Module):
            self._module(value, kind, following)
        elif is_own_class(kind):
            self._attribute(value, kind, following)
        elif issubclass(kind, type) and is_own_class(value):
            self.owner = "attribute"
            attribute = key_in(following[0], following[1]) if len(following) > 1 and type(following[0]) is dict else None
            if attribute is not None:
                self.name = f"{name_of_class(value)}.{attribute}"
        elif self.is_of_library or (self.owner == "variable" and self.root.function is None):
            self._library_attribute(value, kind, following)

    def _library_attribute(self, value: Any, kind: type, following: list[object]) -> None:
        """Where no attribute of the program's leads on: the list, dict or the like of a library's object says more than a variable."""
        if name_of_class(type(_led_to(value, following))) not in _FILLED or issubclass(kind, type):
            return
        attribute = attribute_of(value, following)
        if attribute is not None:
            self.name, self.owner, self.is_of_library = f"{name_of_class(kind)}.{attribute}", "attribute", True

    def _attribute(self, value: Any, kind: type, following: list[object]) -> None:
        attribute = attribute_of(value, following)
        if attribute is None:
            return
        self.name, self.owner = f"{name_of_class(kind)}.{attribute}", "attribute"
        # What it leads on to has the same attributes as the first object, which is needed: they tell nothing.
        other = _led_to(value, following)
        if type(other) is kind and type(dict.get(space_of(other) or {}, attribute)) is kind:
            self._settle("link")

    def _module(self, value: Any, kind: type, following: list[object]) -> None:
        attribute = attribute_of(value, following)
        if attribute == "_buffers" and is_own_class(kind):
            buffers, one = following[-2:]
            buffer = key_in(buffers, one)
            if buffer is not None:
                self.name = f"{name_of_class(kind)}.{buffer}"
        if attribute is None or attribute in _PARTS_OF_MODULE:
            return
        if attribute.endswith("_hooks"):
            self._settle("hook")
            return
        self.name = f"{name_of_class(kind)}.{attribute}"
        self.owner = "metric" if _is_metric(kind) else "module attribute"

    def _closure(self, function: types.FunctionType, following: list[object]) -> None:
        cells = function.__closure__
        if cells is None or following[0] is not cells:
            return
        # Of many functions that each keep a model, what grows is the list that they are in.
        if self.through and name_of_class(type(following[2])) not in _CONTAINERS:
            return
        for name, cell in zip(function.__code__.co_freevars, cells):
            if cell is following[1]:
                self.name, self.owner = name, "closure"

    def _settle(self, owner: str) -> None:
        self.owner, self.is_settled = owner, True

    def _is_namespace(self, at: int) -> bool:
        """The `__dict__` of the object before, or the tuple of a function's cells."""
        if at == 0:
            return False
        before = self.way[at - 1]
        if type(before) is types.FunctionType or issubclass(type(before), type):
            return True
        return name_of_class(type(before)) not in _CONTAINERS and space_of(before) is self.way[at]


def _led_to(owner: object, following: list[object]) -> object:
    """What an attribute of `owner` is, by the way that goes on with `following`."""
    at = 1 if following and following[0] is space_of(owner) else 0
    return following[at] if len(following) > at else None


def name_of(way: Way, hooked: set[int]) -> Name:
    """`hooked`: ids of containers that a hook fills."""
    return _Reading(way, hooked).read()


def filled_by_hooks(modules: list[Any], tensors: list[Any]) -> set[int]:
    """Ids of what the hooks of modules and tensors have at hand: variables of their closures, globals they name, the
    object whose method they are."""
    found: set[int] = set()
    for module in modules:
        for name, hooks in list(dict.items(space_of(module) or {})):
            if type(name) is str and name.endswith("_hooks") and issubclass(type(hooks), dict):
                for hook in list(dict.values(hooks)):
                    found.update(_at_hand(hook))
    for tensor in tensors:
        hooks = backward_hooks_of(tensor)
        if issubclass(type(hooks), dict):
            for hook in list(dict.values(hooks)):
                found.update(_at_hand(hook))
    return found


def _at_hand(hook: Any) -> set[int]:
    found: set[int] = set()
    if type(hook) is types.MethodType or type(hook) is types.BuiltinMethodType:
        if not issubclass(type(hook.__self__), (types.ModuleType, torch.nn.Module)):
            found.add(id(hook.__self__))
        hook = hook.__func__ if type(hook) is types.MethodType else None
    elif is_own_class(type(hook)):  # an object that is called
        found.add(id(hook))
    if type(hook) is types.FunctionType:
        for cell in hook.__closure__ or ():
            try:
                found.add(id(cell.cell_contents))
            except ValueError:  # empty
                continue
        space = hook.__globals__
        found.update(id(dict.get(space, name)) for name in hook.__code__.co_names if dict.__contains__(space, name))
    return found
