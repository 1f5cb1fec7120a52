"""The attention that a GPU would choose: on the meta device PyTorch takes the plain formula, which keeps the scores."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional

_aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)
_real: Any = functional.scaled_dot_product_attention
_BIAS_ALIGNMENT = 8  # elements: aten/src/ATen/native/transformers/attention.cpp, preprocess_mask


def chosen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention` on a GPU since Ampere, by the conditions of aten's cuda/sdp_utils.cpp. The host's
    own kernel, for tensors that are there, keeps about as much as a fused one."""
    if not query.is_meta:
        more = {"enable_gqa": True} if enable_gqa else {}
        host: torch.Tensor = _real(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **more)
        return host
    can_fuse = _can_fuse(query, key, value, attn_mask, enable_gqa)
    if can_fuse and _can_flash(query, key, value, attn_mask, is_causal):
        return _flash(query, key, value, dropout_p, is_causal, scale)
    fits = can_fuse and _can_be_efficient(query, key, value)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(attn_mask.logical_not(), float("-inf"))
    if not fits:
        math: Any = _aten._scaled_dot_product_attention_math
        more = {"enable_gqa": True} if enable_gqa else {}
        out: torch.Tensor = math(query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, **more)[0]
        return out
    if query.shape[1] != key.shape[1]:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    if attn_mask is not None:
        attn_mask = _aligned(attn_mask).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    keeps = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    call: Any = _aten._scaled_dot_product_efficient_attention
    return call(query, key, value, attn_mask, keeps, dropout_p, is_causal, scale=scale)[0]


def _can_fuse(query: Any, key: Any, value: Any, mask: Any, enable_gqa: bool) -> bool:
    """What all fused kernels ask: the last dimension lies together, that of the mask too (T5's bias does not)."""
    tensors = (query, key, value)
    if any(tensor.dim() != 4 or tensor.shape[-2] == 0 or tensor.shape[0] != query.shape[0] for tensor in tensors):
        return False
    if any(tensor.stride(-1) != 1 for tensor in (*tensors, *(() if mask is None else (mask,)))):
        return False
    if enable_gqa:
        return bool(key.shape[1] == value.shape[1] and key.shape[1] > 0 and query.shape[1] % key.shape[1] == 0)
    return bool(query.shape[1] == key.shape[1] == value.shape[1])


def _can_flash(query: Any, key: Any, value: Any, mask: Any, is_causal: bool) -> bool:
    if mask is not None or query.dtype not in _HALF or not torch.backends.cuda.flash_sdp_enabled():
        return False
    if is_causal and query.shape[-2] != key.shape[-2]:
        return False
    return bool(query.shape[-1] == key.shape[-1] == value.shape[-1] <= 256)


def _can_be_efficient(query: Any, key: Any, value: Any) -> bool:
    alignment = 8 if query.dtype in _HALF else 4
    if query.dtype not in (*_HALF, torch.float32) or not torch.backends.cuda.mem_efficient_sdp_enabled():
        return False
    size = query.shape[-1]
    return bool(size == key.shape[-1] and size % alignment == 0 and value.shape[-1] % alignment == 0)


def _flash(query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, scale: float | None) -> torch.Tensor:
    """Heads are padded to a multiple of 8 elements. cuDNN's kernel, which Hopper prefers, keeps as many bytes."""
    size = query.shape[-1]
    scale = size**-0.5 if scale is None else scale
    if missing := -size % 8:
        query, key, value = (functional.pad(tensor, (0, missing)) for tensor in (query, key, value))
    call: Any = _aten._scaled_dot_product_flash_attention
    return call(query, key, value, dropout_p, is_causal, False, scale=scale)[0][..., :size]


def _aligned(bias: torch.Tensor) -> torch.Tensor:
    columns = bias.shape[-1]
    if all(stride % _BIAS_ALIGNMENT == 0 for stride in bias.stride()[:-1]):
        return bias
    return functional.pad(bias, (0, _BIAS_ALIGNMENT - columns % _BIAS_ALIGNMENT))[..., :columns]


def choose_kernels() -> None:
    functional.scaled_dot_product_attention = chosen
