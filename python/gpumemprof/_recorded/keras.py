"""Tells the probe in which layer of a Keras 3 model a thread is, on any of its backends.

Keras keeps the names itself: what a layer builds and calls runs in a `name_scope`, and variables' paths are made of these
("sequential/dense"). So nothing of the model is touched; where a scope has been entered or left, the thread's name is told
to the probe, and what is allocated meanwhile carries it. No frame of ours is ever between two frames of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.when_imported import drop, when_imported
from . import graph_scopes

_COMMON = "keras.src.backend.common.name_scope"
# Those that override what a scope does when it is entered.
_JAX = "keras.src.backend.jax.core"
_TENSORFLOW = "keras.src.backend.tensorflow.core"
_TORCH = "keras.src.backend.torch.core"
_PATH = "_gpumemprof_path"

# Each stays as long as the process. A program that makes more than these makes them on the way (a number in a name): what
# comes then is one layer, called what it is.
MAX_NAMES = 20_000
_BEYOND = f"(a layer beyond the first {MAX_NAMES} names)"
_MAX_BYTES = 1000  # as the probe reads

_set_layer: Callable[[bytes | None], None]
_names: dict[str, bytes] = {}
_is_compiling: Callable[[], bool] = bool  # in code that torch.compile follows it is torch's own answer


def arm() -> None:
    """From now on, or from when Keras is imported. Nothing where the process has no probe."""
    when_imported(_COMMON, _begin)


def _begin(module: Any) -> None:
    global _set_layer
    import ctypes  # here, as most programs have no Keras

    function = ctypes.PyDLL(None).gpumemprof_set_layer  # AttributeError without the probe; it keeps the GIL
    function.argtypes, function.restype = [ctypes.c_char_p], None
    _set_layer = function
    _wrap_both(module)
    when_imported(_JAX, _wrap_enter)
    when_imported(_TENSORFLOW, _wrap_enter_of_tensorflow)
    when_imported(_TORCH, _note_torch)


def _note_torch(module: Any) -> None:
    global _is_compiling
    _is_compiling = module.torch.compiler.is_compiling


def _name(path: str) -> bytes:
    """The probe keeps the address, so the bytes live as long as the process."""
    name = _names.get(path)
    if name is None and len(_names) >= MAX_NAMES:
        path = _BEYOND
        name = _names.get(path)
    if name is None:
        name = path.encode("utf-8", "replace").replace(b"\0", b"?")[:_MAX_BYTES]
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(name))
        _names[path] = name
    return name


def _tell_innermost(state: Any) -> None:
    """`state`: Keras' own, of the calling thread. What goes wrong is ours and is dropped."""
    try:
        if not _is_compiling():
            _tell(state.get_global_attribute("name_scope_stack"))
    except Exception as error:
        drop(error)


def _tell(scopes: list[Any] | None) -> None:
    """`scopes`: the thread's, the innermost last."""
    if not scopes:
        _set_layer(None)
        return
    inner = scopes[-1]
    path = getattr(inner, _PATH, None)
    if path is None:
        path = _path_of(scopes)
        setattr(inner, _PATH, path)
    _set_layer(_name(path))


def _path_of(scopes: list[Any]) -> str:
    """As Keras puts a variable's path together: a scope may begin anew at a path of its own."""
    parts: list[str] = []
    for scope in scopes:
        if scope.override_parent is not None:
            parts = [part for part in scope.override_parent.split("/") if part]
        parts.append(scope.name)
    return "/".join(parts)


def _wrap_both(module: Any) -> None:
    _wrap_enter(module)
    scope, state = module.name_scope, module.global_state
    leave = scope.__exit__

    def __exit__(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = leave(self, *args, **kwargs)
        _tell_innermost(state)
        return result

    scope.__exit__ = __exit__


def _wrap_enter_of_tensorflow(module: Any) -> None:
    """There the scope may be one of a graph, whose operations run later, on threads that know of no layer."""
    state, tensorflow = module.global_state, module.tf

    def note() -> None:
        try:
            scopes = state.get_global_attribute("name_scope_stack")
            if scopes:
                graph_scopes.note(tensorflow, _path_of(scopes))
        except Exception as error:
            drop(error)

    _wrap_enter(module, note)


def _wrap_enter(module: Any, also: Callable[[], None] | None = None) -> None:
    """`also`: to be called after a scope was entered; it raises nothing."""
    scope, state = module.name_scope, module.global_state
    enter = scope.__dict__.get("__enter__")
    if enter is None:  # it is that of the class above
        return

    def __enter__(self: Any) -> Any:
        result = enter(self)
        _tell_innermost(state)
        if also is not None:
            also()
        return result

    scope.__enter__ = __enter__
