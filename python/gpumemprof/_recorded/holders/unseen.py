"""What objects say of themselves, past every property, metaclass and `__getattribute__` of the program: asked of the
descriptors of Python's own types."""

from __future__ import annotations

import types
from typing import Any

_TYPE = type.__dict__
mro_of = _TYPE["__mro__"].__get__  # of a class: its bases, itself first
name_of_class = _TYPE["__name__"].__get__
_space_of_class = _TYPE["__dict__"].__get__
_module_of_class = _TYPE["__module__"].__get__


def space_of_class(kind: type) -> dict[str, Any]:
    """A copy of a class's own attributes."""
    return dict(_space_of_class(kind))


def module_of_class(kind: type) -> str | None:
    """None where the class says something else than a name."""
    try:
        name = _module_of_class(kind)
    except AttributeError:
        return None
    return name if type(name) is str else None


def space_of(value: object) -> dict[str, Any] | None:
    """The attributes that an object keeps in a dictionary; None if it has none."""
    for kind in mro_of(type(value)):
        descriptor = _space_of_class(kind).get("__dict__")
        if type(descriptor) is types.GetSetDescriptorType:  # Python's; a class may have put its own before it
            space = descriptor.__get__(value)
            return space if issubclass(type(space), dict) else None
    return None
