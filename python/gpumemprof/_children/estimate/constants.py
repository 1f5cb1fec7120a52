"""Tensors that one number fills. They have no memory here, but what a script asks of them is known: a model that makes
its own mask of ones hears that all of it is set, and leaves the mask out, as it would on a GPU."""

from __future__ import annotations

import operator
from typing import Any

import torch

_aten = torch.ops.aten
_MOST_LOOKED_AT = 1 << 22  # elements of a tensor of the host
_COPIES = frozenset((_aten._to_copy.default, _aten.clone.default))
_FILLS = {_aten.ones: 1, _aten.ones_like: 1, _aten.zeros: 0, _aten.zeros_like: 0, _aten.zero_: 0}
_WITH_NUMBER = {
    _aten.eq: operator.eq,
    _aten.ne: operator.ne,
    _aten.lt: operator.lt,
    _aten.le: operator.le,
    _aten.gt: operator.gt,
    _aten.ge: operator.ge,
}
_NEGATIONS = frozenset((_aten.logical_not.default, _aten.bitwise_not.default))


class Constants:
    """By storage: views of it have the same number in them."""

    def __init__(self) -> None:
        self._numbers: dict[int, Any] = {}

    def of(self, tensor: Any) -> Any:
        """None: not known."""
        return self._numbers.get(tensor.untyped_storage()._cdata) if isinstance(tensor, torch.Tensor) else None

    def forget(self, storage: int) -> None:
        self._numbers.pop(storage, None)

    def note(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """After each operation."""
        if func._schema.is_mutable:
            for place, argument in enumerate(func._schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    self._forget_all(args[place] if place < len(args) else kwargs.get(argument.name))
        if not isinstance(result, torch.Tensor) or not result.is_meta:
            return
        number = self._number(func, args, result)
        if number is not None and result.numel() * result.element_size() == result.untyped_storage().nbytes():
            self._numbers[result.untyped_storage()._cdata] = _as(result.dtype, number)

    def _forget_all(self, word: Any) -> None:
        for tensor in word if isinstance(word, (list, tuple)) else (word,):
            if isinstance(tensor, torch.Tensor) and tensor.is_meta:
                self.forget(tensor.untyped_storage()._cdata)

    def _number(self, func: Any, args: Any, result: torch.Tensor) -> Any:
        packet = func.overloadpacket
        if packet in _FILLS:
            return _FILLS[packet]
        if func is _aten.full.default or func is _aten.full_like.default or func is _aten.fill_.Scalar:
            return args[1]
        if not args or not isinstance(args[0], torch.Tensor):
            return None
        number = self.of(args[0]) if args[0].is_meta else _of_host(func, args[0])
        if number is None:
            return None
        if func in _COPIES:
            return number
        if packet is _aten.all or packet is _aten.any:
            return bool(number) if args[0].numel() else None
        if func is _aten.sum.default:
            return number * args[0].numel()
        if func in _NEGATIONS and args[0].dtype == torch.bool:
            return not number
        if packet in _WITH_NUMBER and len(args) > 1 and isinstance(args[1], (bool, int, float)):
            return _WITH_NUMBER[packet](number, args[1])
        return None


def _of_host(func: Any, tensor: torch.Tensor) -> Any:
    """A mask or indices that come over; numbers with a fraction decide nothing."""
    if func is not _aten._to_copy.default or tensor.is_floating_point() or tensor.is_complex():
        return None
    if not 0 < tensor.numel() <= _MOST_LOOKED_AT or tensor.device.type != "cpu":
        return None
    first = tensor.reshape(-1)[0]
    return first.item() if bool((tensor == first).all()) else None


def _as(dtype: torch.dtype, number: Any) -> Any:
    if dtype == torch.bool:
        return bool(number)
    return float(number) if dtype.is_floating_point else int(number)
