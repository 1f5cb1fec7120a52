"""Has a traced script save nothing: its tensors have no values, and a file that it saved before is worth more."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch

from ..._core.when_imported import when_imported

_DISTRIBUTED = "torch.distributed.checkpoint"


def skip(on_save: Callable[[bool], None]) -> None:
    """`on_save` is called in place of each save, with true where it would go into memory."""

    def save(*args: Any, **kwargs: Any) -> None:
        on_save(any(isinstance(one, io.BytesIO) for one in (*args, *kwargs.values())))

    def save_nothing(*_: Any, **__: Any) -> None:
        on_save(False)

    def in_shards(module: Any) -> None:
        for place in (module, module.state_dict_saver):
            for name in ("save", "async_save", "save_state_dict"):
                setattr(place, name, save_nothing)

    def in_safetensors(module: Any) -> None:
        module.save_file = module.save_model = save_nothing

    torch.save = save
    torch.jit.save = save
    when_imported(_DISTRIBUTED, in_shards)
    when_imported("safetensors.torch", in_safetensors)
