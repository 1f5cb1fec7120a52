"""The only place that imports PyTorch."""

from __future__ import annotations

import sys
from typing import Any


def require_torch(feature: str = "this feature") -> Any:
    """The module torch, imported now. ImportError that names the extra to install if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"PyTorch is required for {feature}. Install it with `pip install 'gpumemprof[torch]'`."
        ) from error
    return torch


def loaded_torch() -> Any | None:
    """The module torch where the program has imported it already, else None: never imports it."""
    return sys.modules.get("torch")
