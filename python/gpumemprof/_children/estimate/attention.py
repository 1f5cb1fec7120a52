"""The attention that a GPU would choose: on the meta device PyTorch takes the plain formula, which keeps the scores."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as functional

_aten = torch.ops.aten
_BIAS_ALIGNMENT = 4  # elements of a row of the bias in single precision: the kernel reads 16 bytes at a time


def efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention` by the memory-efficient kernel, by the plain formula where that one refuses."""
    if enable_gqa and query.dim() == 4 and query.shape[1] != key.shape[1]:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(attn_mask.logical_not(), float("-inf"))
    if query.dim() != 4 or query.shape[-1] % 4:
        return _plain(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if attn_mask is not None:
        attn_mask = _aligned(attn_mask).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    keeps = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    call: Any = _aten._scaled_dot_product_efficient_attention
    return call(query, key, value, attn_mask, keeps, dropout_p, is_causal, scale=scale)[0]


def _aligned(bias: torch.Tensor) -> torch.Tensor:
    columns = bias.shape[-1]
    missing = -columns % _BIAS_ALIGNMENT
    return functional.pad(bias, (0, missing))[..., :columns] if missing else bias


def _plain(query: Any, key: Any, value: Any, bias: Any, dropout_p: float, is_causal: bool, scale: float | None) -> Any:
    scores = (query @ key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        rows, columns = scores.shape[-2:]
        future = torch.ones(rows, columns, dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    if bias is not None:
        scores = scores + bias
    weights = scores.softmax(-1)
    return (functional.dropout(weights, dropout_p) if dropout_p else weights) @ value


def choose_efficient() -> None:
    functional.scaled_dot_product_attention = efficient
