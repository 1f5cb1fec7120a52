"""Predicts a transformer's memory from its configuration: `estimate_config`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._core.native import native

_MOST_BYTES = 4 << 20  # the core refuses more; no reason to read it


def estimate_config(
    config: str | os.PathLike[str] | Mapping[str, Any],
    *,
    batch: int | str = 1,
    sequence: int | None = None,
    optimizer: str | None = None,
    precision: str | None = None,
    checkpointing: str | None = None,
    inference: bool = False,
    capacity: int | str | None = None,
    table: bool = False,
    prices: str | os.PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Predicts the peak memory of training or running a model from its configuration.

    `config` is the path of a Hugging Face `config.json` or of Megatron's arguments (JSON or YAML), or such a
    configuration as a mapping. `settings` are those of `gpumemprof estimate --config --set`: `tp`, `pp`, `dp`, `zero`
    and so on. `batch="auto"` finds the largest batch that fits `capacity`.

    Returns the output of `gpumemprof estimate --config … --format json` (schema `gpumemprof.estimate/1`). Raises
    ValueError with one sentence for an invalid configuration or setting, OSError if a file cannot be read.
    """
    if isinstance(batch, bool):
        raise ValueError("batch is a number, or 'auto'")
    if isinstance(config, Mapping):
        subject, text = "configuration", json.dumps(dict(config), allow_nan=False)
    else:
        subject, text = Path(config).name, _text_of(config)
    # A Megatron configuration has a batch of its own; the default here must not overrule it.
    options = [] if batch == 1 else [("batch", str(batch))]
    named = {"sequence": sequence, "optimizer": optimizer, "precision": precision, "checkpointing": checkpointing}
    options += [(name, str(value)) for name, value in named.items() if value is not None]
    if inference:
        options.append(("inference", "true"))
    options += [(name.replace("_", "-"), _setting_text(value)) for name, value in (settings or {}).items()]
    answer: dict[str, Any] = json.loads(
        native().estimate_config(
            text,
            subject,
            options,
            "" if capacity is None else str(capacity),
            table,
            "" if prices is None else _text_of(prices),
        )
    )
    return answer


def _setting_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text_of(path: str | os.PathLike[str]) -> str:
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    return data.decode("utf-8", errors="surrogateescape").encode("utf-8", errors="replace").decode("utf-8")
