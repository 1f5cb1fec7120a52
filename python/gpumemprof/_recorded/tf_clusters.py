"""Which operations of graphs are calls of functions that XLA compiled, by the names that these operations have when they run.

A graph that is called is put into the one that calls it, under the name of the call: `PartitionedCall/PartitionedCall` is a
call in a function that is called. TensorFlow gives calls few names, so the same one may be compiled here and not there.
"""

from __future__ import annotations

from typing import Any


class Clusters:
    def __init__(self) -> None:
        self._of_graph: dict[str, dict[str, set[str | None]]] = {}  # by name of graph, by name of call; None: not compiled
        self._called: list[tuple[str, str]] = []  # calls that are not compiled, and their functions

    def add(self, graph: str, operation: Any) -> None:
        """`operation`: any of `graph`."""
        if not operation.type.endswith("PartitionedCall"):
            return
        function = operation.get_attr("f").name
        # The attribute is there, and false, where nothing is compiled.
        is_compiled = operation.node_def.attr["_XlaMustCompile"].b
        self._of_graph.setdefault(graph, {}).setdefault(operation.name, set()).add(function if is_compiled else None)
        if not is_compiled:
            self._called.append((operation.name, function))

    def by_name(self) -> dict[str, str]:
        """The function that XLA compiled, by the name of its call; no name that can also be another call's."""
        found: dict[str, set[str | None]] = {}
        for graph, calls in self._of_graph.items():
            callers = [name for name, function in self._called if _is_of(function, graph)]
            for name, functions in calls.items():
                found.setdefault(name, set()).update(functions)
                for caller in callers:
                    found.setdefault(f"{caller}/{name}", set()).update(functions)
        return {name: function for name, functions in found.items() if len(functions) == 1 for function in functions if function}


def _is_of(function: str, graph: str) -> bool:
    """Whether a graph of this name is that of the function `__inference_NAME_7`."""
    start = f"__inference_{graph}_"
    return function.startswith(start) and function[len(start) :].isdigit()
