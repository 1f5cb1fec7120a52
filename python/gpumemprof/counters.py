"""The source of figures, decided in one place."""

from typing import Any

from ._counting import counters as _counters
from ._counting.counters import CPU as CPU
from ._counting.counters import Device as Device
from ._counting.counters import Figures as Figures
from ._counting.counters import Own as Own
from ._counting.counters import Reading as Reading
from ._counting.counters import SegmentedSpan as SegmentedSpan
from ._counting.counters import Source as Source
from ._counting.counters import Span as Span
from ._counting.counters import Watch as Watch
from ._counting.counters import exact_available as exact_available
from ._counting.counters import figures_of as figures_of
from ._counting.counters import read_rss_bytes as read_rss_bytes
from ._counting.counters import resolve_device as resolve_device
from ._counting.counters import rss_bytes as rss_bytes
from ._counting.counters import source_changed as source_changed
from ._counting.counters import source_for as source_for
from ._counting.counters import status_bytes as status_bytes


def __getattr__(name: str) -> Any:
    if name == "generation":  # it counts up
        return _counters.generation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
