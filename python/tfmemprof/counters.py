"""The source of figures: see gpumemprof.counters, whose sources these are, with TensorFlow instead of PyTorch."""

from __future__ import annotations

from typing import Any

from gpumemprof._counting import counters
from gpumemprof._counting.spans import Source

from ._source import TensorFlowSource
from .devices import resolve_device


def source_for(device: Any = None) -> Source:
    """The best source of figures for a device, as resolve_device takes it. Begins exact counting where that can be."""
    exact, why_not = counters.exact_available(attach=False)
    counters._note_kind(exact)
    return TensorFlowSource(resolve_device(device), exact, why_not)
