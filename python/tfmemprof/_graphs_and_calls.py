"""Profiled functions inside graphs: AutoGraph rewrites the Python code that it finds there, and must not rewrite ours.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from gpumemprof._profiling.wrapping import name_of

from ._tensorflow import is_tracing, loaded_tensorflow

F = TypeVar("F", bound=Callable[..., Any])

# The attribute by which AutoGraph knows functions that it made itself, and calls as they are.
_MARK = "autograph_info__"
_METHODS = (
    "get_concrete_function", "python_function", "function_spec", "input_signature",
    "pretty_printed_concrete_signatures", "experimental_get_compiler_ir", "experimental_get_tracing_count",
)  # fmt: skip


def skipped_by_autograph(function: F) -> F:
    """Marks a function to be called as it is. What it calls is then not rewritten either."""
    setattr(function, _MARK, {})
    return function


def graph_aware(
    function: Callable[..., Any], wrap: Callable[[Any, str], Callable[..., Any]], name: str | None
) -> Callable[..., Any]:
    """`wrap(function, name)`, such that a graph built through it is the graph of the function itself.

    A tf.function keeps its own methods (get_concrete_function and so on) on the wrapper.
    """
    if inspect.isfunction(function) or inspect.ismethod(function):
        wrapper = wrap(_rewritten_in_graphs(function), name or name_of(function))
    else:
        python_function = getattr(function, "python_function", function)
        wrapper = wrap(function, name or name_of(python_function))
        if python_function is not function:  # a tf.function
            wrapper.__name__ = name_of(python_function)
            for each in _METHODS:
                if hasattr(function, each):
                    setattr(wrapper, each, getattr(function, each))
    return skipped_by_autograph(wrapper)


def _rewritten_in_graphs(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same kind of function, whose body AutoGraph rewrites where it would have done so without us."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        return function  # no graph is built of these
    if inspect.isasyncgenfunction(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return function(*args, **kwargs)
        return _converted(function)(*args, **kwargs)

    return call


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    autograph = getattr(getattr(loaded_tensorflow(), "__internal__", None), "autograph", None)
    if autograph is None:
        return function
    # Rewritten only where the function around it is: whoever said do_not_convert gets what he said.
    converted: Callable[..., Any] = autograph.tf_convert(function, autograph.control_status_ctx())
    return converted
