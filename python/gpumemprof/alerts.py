"""When to speak up: thresholds with hysteresis and a rate limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_HYSTERESIS = 0.05  # of the total: 80 % is left again below 75 %
DEFAULT_MIN_INTERVAL_S = 30.0


@dataclass(frozen=True)
class Level:
    """A step of an alarm: entered at `threshold` (same unit as the value, often a ratio of the total)."""

    name: str
    threshold: float


@dataclass(frozen=True)
class Alert:
    level: str
    value: float
    threshold: float
    time_s: float
    suppressed: int  # alerts of this alarm that the rate limit kept back since the last one


class Alarm:
    """Speaks when a value enters a level, and again only after it has left that level.

    A level is left below threshold − hysteresis, so a value that trembles around a threshold speaks once. Two alerts
    of one level are at least `min_interval_s` apart; one that the limit kept back comes when the interval is over, if
    the level still holds. Rising to a higher level is never kept back by a lower one. Not thread-safe.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        hysteresis: float = DEFAULT_HYSTERESIS,
        min_interval_s: float = DEFAULT_MIN_INTERVAL_S,
    ) -> None:
        if not levels or hysteresis < 0 or min_interval_s < 0:
            raise ValueError("an alarm has levels, a hysteresis >= 0 and an interval >= 0")
        self.levels = sorted(levels, key=lambda level: level.threshold)
        self.hysteresis = hysteresis
        self.min_interval_s = min_interval_s
        self.suppressed_total = 0
        self._active = -1  # index of the level we are in; -1: none
        self._pending = False  # in a level whose alert was kept back
        self._last_spoken: dict[int, float] = {}
        self._suppressed = 0

    @property
    def active(self) -> str | None:
        """The level that holds now, whether or not its alert was kept back."""
        return self.levels[self._active].name if self._active >= 0 else None

    def update(self, time_s: float, value: float) -> Alert | None:
        """Takes the value at a time (any steady clock, seconds); an alert where there is something new to say."""
        reached = -1
        for index, level in enumerate(self.levels):
            if value >= level.threshold:
                reached = index
        if reached > self._active:
            self._active = reached
            return self._speak(time_s, value, new=True)
        while self._active > reached and value < self.levels[self._active].threshold - self.hysteresis:
            # One level lower is not entered from above: its alert belongs to the way up.
            self._active -= 1
            self._pending = False
        if self._pending and self._active >= 0:
            return self._speak(time_s, value, new=False)
        return None

    def _speak(self, time_s: float, value: float, *, new: bool) -> Alert | None:
        last = self._last_spoken.get(self._active)
        if last is not None and time_s - last < self.min_interval_s:
            self._pending = True
            if new:
                self._suppressed += 1
                self.suppressed_total += 1
            return None
        self._pending = False
        self._last_spoken[self._active] = time_s
        suppressed, self._suppressed = self._suppressed, 0
        level = self.levels[self._active]
        return Alert(level.name, value, level.threshold, time_s, suppressed)
