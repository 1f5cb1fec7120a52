"""Whether a recorded process goes on to keep what it allocates: by two numbers, so that it costs nothing to ask."""

from __future__ import annotations

_FIRST_SPAN_EVENTS = 64
_LEAST_SPAN_EVENTS = 1024
_LEAST_BLOCKS = 16
_SPANS = 2


class Growth:
    """Whether the number of blocks goes on to grow: over two spans of events, the second twice as long.
    While a model or its data is made little is freed, which is no growth; what one step makes and drops is seldom there
    at the end of both."""

    def __init__(self) -> None:
        self.events = _FIRST_SPAN_EVENTS  # of the span that runs
        self._spans = 0

    def add_span(self, blocks: int) -> None:
        """`blocks`: made less freed in the span that ended."""
        grows = self.events >= _LEAST_SPAN_EVENTS and _LEAST_BLOCKS <= blocks < self.events // 4
        self._spans = self._spans + 1 if grows else 0
        self.events *= 2

    def is_seen(self) -> bool:
        return self._spans >= _SPANS
