"""The only place that imports PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from .needed import needed


def require_torch(feature: str = "this feature") -> Any:
    """The module torch, imported now. ImportError that says what to install where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(needed(f"PyTorch, for {feature},", "torch")) from error
    return torch


_is_ours = False


def torch_to_look() -> Any:
    """The module torch to see which devices there are, imported now; ImportError where it is missing."""
    global _is_ours
    is_loaded = "torch" in sys.modules
    import torch

    _is_ours = _is_ours or not is_loaded
    return torch


def program_has_torch() -> bool:
    """Whether the program itself has imported PyTorch, as far as we know: not where torch_to_look() came first."""
    return "torch" in sys.modules and not _is_ours


def loaded_torch() -> Any | None:
    """The module torch where the program has imported it already, else None: never imports it."""
    return sys.modules.get("torch")
