"""Calls for modules that the program imports later, or has imported already."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in typing, whose import alone takes 10 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_waiting: dict[str, Callable[[Any], None]] = {}
_waiting_before: dict[str, Callable[[Any], None]] = {}


def before_import(name: str, call: Callable[[Any], None]) -> None:
    """Calls `call(None)` when the module is asked for, before its code runs; at once where it is loaded. What `call` raises
    is dropped, but for what a signal handler of the program's raises meanwhile."""
    if name in sys.modules:
        _safely(call, None)
        return
    if not _waiting and not _waiting_before:
        sys.meta_path.insert(0, _finder)
    _waiting_before[name] = call


def when_imported(name: str, call: Callable[[Any], None]) -> None:
    """Calls `call(module)` right after the module's own code has run; at once where it is loaded. What `call` raises is
    dropped: an import succeeds or fails as it would without us."""
    module = sys.modules.get(name)
    if module is not None:
        _safely(call, module)
        return
    if not _waiting and not _waiting_before:
        sys.meta_path.insert(0, _finder)
    _waiting[name] = call


def no_longer_before(name: str) -> None:
    """Takes back what `before_import` was asked for."""
    _waiting_before.pop(name, None)


def _safely(call: Callable[[Any], None], module: Any) -> None:
    try:
        call(module)
    except Exception as error:
        drop(error)


def drop(error: Exception) -> None:
    """To be called where an error of ours is caught: raises again what a signal handler of the program's has raised."""
    from .signal_errors import of_the_program

    if of_the_program(error) is not None:
        raise error


class _Finder:
    """Is asked for every import while something is waited for, and finds nothing itself."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        while name in _waiting_before:  # who is called may ask to be called for it, too
            _safely(_waiting_before.pop(name), None)
        call = _waiting.get(name)
        if call is None:
            self.leave_when_idle()
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                _call_when_executed(name, spec, call)
                return spec
        return None

    def leave_when_idle(self) -> None:
        if not _waiting and not _waiting_before and self in sys.meta_path:
            sys.meta_path.remove(self)


def _call_when_executed(name: str, spec: Any, call: Callable[[Any], None]) -> None:
    """It is waited for until then: many a program asks for a spec to see whether a module is there, and imports it
    later."""
    loader = spec.loader
    try:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module  # the loader is as it was
            execute(module)
            if _waiting.pop(name, None) is None:
                return
            _finder.leave_when_idle()
            _safely(call, module)

        loader.exec_module = exec_module
    except Exception:  # a loader that allows no such thing: nobody is called
        pass


_finder = _Finder()
