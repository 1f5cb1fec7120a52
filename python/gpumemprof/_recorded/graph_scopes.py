"""Which layer of a Keras model the scopes in the names of TensorFlow's graphs are.

TensorFlow makes the names of scopes unique in each graph, so `sequential/dense` is `sequential_1/dense_1` where a model is
traced again, and with two layers `dense` and `dense_1` nobody could say afterwards whose that is. Keras opens both scopes at
the same moment; there the pair is noted, once a graph that is made: running it costs nothing.
"""

from __future__ import annotations

from typing import Any

MAX_SCOPES = 50_000

paths: dict[str, str | None] = {}  # of layers, by scope; None: graphs do not agree
left_out = 0  # scopes for which there was no room


def note(tensorflow: Any, path: str) -> None:
    """The calling thread has entered the scope of the layer `path`. Nothing if it executes eagerly."""
    global left_out
    if tensorflow.executing_eagerly():
        return
    scope = tensorflow.get_current_name_scope()
    if not scope:
        return
    if scope in paths:
        if paths[scope] != path:
            paths[scope] = None
    elif len(paths) < MAX_SCOPES:
        paths[scope] = path
    else:
        left_out += 1
