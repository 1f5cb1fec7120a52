"""What is asked of a tensor: PyTorch's own class answers, never one of the program below it. Where `without_the_program`
is entered. Imports PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from .unseen import mro_of, space_of_class

_BASE: Any = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase  # until 2.1
_data_address = getattr(torch._C, "_data_address", None)  # since 2.1; of a view, too, the storage's

# Neither classes with a `__torch_function__` nor modes hear of what is asked.
without_the_program = torch._C.DisableTorchFunction

MOST_BYTES = 1 << 53
_PLAIN = (torch.Tensor, torch.nn.Parameter)

backward_hooks_of = _BASE._backward_hooks.__get__
grad_fn_of = _BASE.grad_fn.__get__
_is_leaf = _BASE.is_leaf.__get__
_grad = _BASE.grad.__get__
_base = _BASE._base.__get__
_layout = _BASE.layout.__get__
_ROWS, _COLUMNS = ("crow_indices", "col_indices", "values"), ("ccol_indices", "row_indices", "values")
_NAMES: dict[str, tuple[str, ...]] = {"coo": ("_indices", "_values"), "csr": _ROWS, "bsr": _ROWS, "csc": _COLUMNS, "bsc": _COLUMNS}
# To ask a sparse tensor for its parts is an operator: where it is not known whether anybody hears of it, as in old releases, it
# is not asked.
_PARTS: dict[Any, tuple[str, ...]] = {}
try:
    _modes: Any = torch._C._len_torch_dispatch_stack
    _is_profiled: Any = torch._C._autograd._profiler_enabled
    _below_autograd: Any = torch._C._AutoDispatchBelowAutograd
    _PARTS = {getattr(torch, f"sparse_{name}"): parts for name, parts in _NAMES.items()}
except AttributeError:
    pass


def address_of(tensor: Any) -> int:
    """Where its storage begins. 0 for one that has none: of another kind, or on no device."""
    try:
        if _data_address is not None:
            return int(_data_address(tensor))
        return int(_BASE.untyped_storage(tensor).data_ptr())
    except Exception:
        return 0


def parts_of(tensor: Any) -> tuple[Any, ...]:
    """The tensors that have its storages: itself, or those of a sparse one. None of a sparse one while something hears of
    operators."""
    try:
        kind = type(tensor)
        if kind not in _PLAIN and has_own_dispatch(kind):
            return (tensor,)
        names = _PARTS.get(_layout(tensor))
        if names is None:
            return (tensor,)
        if _modes() or _is_profiled():
            return ()
        with _below_autograd():
            return tuple(getattr(_BASE, name)(tensor) for name in names)
    except Exception:
        return (tensor,)


def bytes_of(tensor: Any) -> int:
    """Of its elements: of a view only those that it shows. All that there may be where its class answers for itself."""
    try:
        kind = type(tensor)
        if kind not in _PLAIN and has_own_dispatch(kind):
            return MOST_BYTES
        return int(_BASE.numel(tensor)) * int(_BASE.element_size(tensor))
    except Exception:
        return MOST_BYTES


def base_of(tensor: Any) -> Any:
    """The tensor that a view keeps; None for any other."""
    try:
        return _base(tensor) if _BASE._is_view(tensor) else None
    except Exception:
        return None


def gradient_of(tensor: Any) -> Any:
    """That of a leaf; asking any other for it makes PyTorch warn."""
    return _grad(tensor) if _is_leaf(tensor) else None


def is_scalar(tensor: Any) -> bool:
    """Whether it has one element. Of a class that says itself how many it has that is not asked."""
    try:
        return not has_own_dispatch(type(tensor)) and bool(_BASE.numel(tensor) == 1)
    except Exception:
        return False


def has_own_dispatch(kind: type) -> bool:
    """Whether operators of such tensors are Python's."""
    for one in mro_of(kind):
        found = space_of_class(one).get("__torch_dispatch__")
        if found is not None:
            return found is not torch._C._disabled_torch_dispatch_impl
    return False
