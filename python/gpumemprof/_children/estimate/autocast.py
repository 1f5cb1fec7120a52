"""What `torch.autocast("cuda")` casts. PyTorch does it in its dispatcher for tensors of a GPU alone, so it is done
here for tensors that stand for them: by the lists of its documentation."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional
from torch.overrides import TorchFunctionMode

from . import attention

_LOWER_NAMES = "matmul mm bmm addmm baddbmm addbmm addmv mv chain_matmul einsum conv1d conv2d conv3d conv_transpose1d "
_LOWER_NAMES += "conv_transpose2d conv_transpose3d"
_SINGLE_NAMES = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm "
)
_SINGLE_NAMES += "group_norm norm cosine_similarity cdist dist pdist renorm prod softmax log_softmax cumprod cumsum sum"
_SINGLE_FUNCTIONAL = (
    "gelu softplus layer_norm group_norm softmax log_softmax softmin nll_loss cross_entropy mse_loss l1_loss "
)
_SINGLE_FUNCTIONAL += (
    "smooth_l1_loss huber_loss kl_div poisson_nll_loss cosine_embedding_loss binary_cross_entropy_with_logits "
)
_SINGLE_FUNCTIONAL += (
    "hinge_embedding_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss "
)
_SINGLE_FUNCTIONAL += "multi_margin_loss cosine_similarity normalize"


def _functions(places: tuple[Any, ...], names: str) -> frozenset[Any]:
    found = [getattr(place, name, None) for place in places for name in names.split()]
    return frozenset(function for function in found if function is not None)


_LOWER = (
    _functions((torch, torch.Tensor), _LOWER_NAMES)
    | _functions((functional,), "linear conv1d conv2d conv3d")
    | {torch.Tensor.__matmul__, torch.Tensor.__rmatmul__, functional.scaled_dot_product_attention, attention.chosen}
)
# `gelu` and `normalize` are not cast by name but by what they call.
_SINGLE = (_functions((torch, torch.Tensor), _SINGLE_NAMES) | _functions((functional,), _SINGLE_FUNCTIONAL)) - {
    functional.gelu,
    functional.normalize,
}

_copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # of weights, until autocast ends, as PyTorch keeps them


class Casting(TorchFunctionMode):  # type: ignore[misc]
    """Autocast on tensors without memory, in its `with` block."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def __enter__(self) -> Any:
        torch.set_autocast_dtype("cuda", self.dtype)
        torch.set_autocast_enabled("cuda", True)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.set_autocast_enabled("cuda", False)
        _copies.clear()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = prepared(func, args, kwargs or {})
        return func(*args, **kwargs)


def prepared(func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments as autocast would hand them on."""
    if not torch.is_autocast_enabled("cuda"):
        if _copies:
            _copies.clear()
        return args, kwargs
    if func in _LOWER:
        dtype = torch.get_autocast_dtype("cuda")
    elif func in _SINGLE:
        dtype = torch.float32
    else:
        return args, kwargs
    # The last one first, as the calls that PyTorch's compiled wrappers make: bias, weight, input.
    named = {key: _cast(word, dtype) for key, word in reversed(kwargs.items())}
    cast = [_cast(word, dtype) for word in reversed(args)]
    return tuple(reversed(cast)), {key: named[key] for key in kwargs}


def _cast(word: Any, dtype: torch.dtype) -> Any:
    if isinstance(word, (list, tuple)):
        return type(word)(_cast(part, dtype) for part in word) if type(word) in (list, tuple) else word
    if not isinstance(word, torch.Tensor) or not word.is_floating_point() or word.dtype in (dtype, torch.float64):
        return word
    if (
        word.dtype != torch.float32
        or not word.requires_grad
        or not word.is_leaf
        or not torch.is_autocast_cache_enabled()
    ):
        return word.to(dtype)
    kept = _copies.get(id(word))
    if kept is None:
        kept = _copies[id(word)] = (word, word.to(dtype))
    return kept[1]
