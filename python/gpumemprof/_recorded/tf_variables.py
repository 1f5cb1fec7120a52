"""Which variable an operation of a graph writes, and the layer that a variable of an optimizer is the state of.

Keras names an optimizer's variable after the one that it stands for, with the slashes gone: the momentum of
`sequential/dense_a/kernel` is `adam/sequential_dense_a_kernel_momentum`. Read backwards such a name can mean several
variables; then none is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def writes_variable(operation_type: str) -> bool:
    """Whether the first input of such an operation is the variable that it changes."""
    if operation_type.startswith("Assign"):
        return operation_type.endswith("VariableOp")
    return operation_type.startswith(("ResourceApply", "ResourceSparseApply", "ResourceScatter"))


def plain_name(variable: Any) -> str:
    return str(variable.name).removesuffix(":0")


def living(graph: Any) -> list[Any]:
    """The variables of `graph` that are not deleted: its own `variables` raises where one is."""
    references = getattr(graph, "_weak_variables", None)
    if references is None:
        return list(graph.variables)
    return [variable for variable in (reference() for reference in references) if variable is not None]


def captured(graph: Any) -> dict[str, Any]:
    """The variables that `graph` reads from outside, by the name of the tensor that stands for them inside."""
    by_handle = {id(variable.handle): variable for variable in living(graph)}
    pairs = ((inside.name, by_handle.get(id(outside))) for outside, inside in graph.captures)
    return {name: variable for name, variable in pairs if variable is not None}


def _candidates(slot: str, shape: Any, references: dict[str, Any]) -> list[tuple[str, str]]:
    """Variables that `slot` may be named after, and what would then be the name of the slot itself."""
    last = slot.rpartition("/")[2]
    found = []
    for name, its_shape in references.items():
        start = name.replace("/", "_") + "_"
        if name != slot and "/" in name and its_shape == shape and last.startswith(start) and len(last) > len(start):
            found.append((name, last[len(start) :]))
    return found


def states(shapes: dict[str, Any]) -> dict[str, str]:
    """Of variables by name, with their shapes: those that an optimizer keeps for another one, and which that is.

    Where several fit, the one that makes the slot's name one which is certain elsewhere; where that is not one
    alone, none.
    """
    found = {name: _candidates(name, shape, shapes) for name, shape in shapes.items() if "/" in name}
    certain = {options[0][1] for options in found.values() if len(options) == 1}
    of: dict[str, str] = {}
    for name, options in found.items():
        fitting = options if len(options) == 1 else [option for option in options if option[1] in certain]
        if len(fitting) == 1:
            of[name] = fitting[0][0]
    return of


def layers_of_initial_values(shapes: dict[str, Any], states: dict[str, str]) -> dict[str, str]:
    """By name of an optimizer's variable, the layer that its first block is for.

    TensorFlow makes equal values once, so the block that is named after one variable may become another's of the
    same shape. Where these are of several layers, nobody can tell.
    """
    layers: dict[Any, set[str | None]] = {}
    for name, reference in states.items():
        layers.setdefault(shapes[name], set()).add(layer_of(reference))
    found = {}
    for name in states:
        (layer, *others) = layers[shapes[name]]
        if layer is not None and not others:
            found[name] = layer
    return found


def shapes_of(variables: Iterable[Any]) -> dict[str, Any]:
    """By name; two variables of one name with different shapes are left out."""
    shapes: dict[str, Any] = {}
    for variable in variables:
        name, shape = plain_name(variable), tuple(variable.shape)
        shapes[name] = shape if shapes.get(name, shape) == shape else None
    return {name: shape for name, shape in shapes.items() if shape is not None}


def layer_of(variable: str) -> str | None:
    """The scope that a variable's name begins with."""
    return variable.rpartition("/")[0] or None
