"""When to speak up: thresholds with hysteresis and a rate limit, by the core's alarm, which the command has too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._core.native import native

DEFAULT_HYSTERESIS = 0.05  # of the total: 80 % is left again below 75 %


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
    of one level are at least `min_interval_s` apart (None: the command's, a minute); one that the limit kept back comes
    when the interval is over, if the level still holds. Rising to a higher level is never kept back by a lower one. Not
    thread-safe.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        hysteresis: float = DEFAULT_HYSTERESIS,
        min_interval_s: float | None = None,
    ) -> None:
        if min_interval_s is None:
            min_interval_s = native().ALARM_PAUSE_S
        if not levels or hysteresis < 0 or min_interval_s < 0:
            raise ValueError("an alarm needs levels, hysteresis >= 0 and interval >= 0")
        self.levels = sorted(levels, key=lambda level: level.threshold)
        self.hysteresis = hysteresis
        self.min_interval_s = min_interval_s
        self._alarm = native().Alarm([level.threshold for level in self.levels], hysteresis, min_interval_s)

    @property
    def suppressed_total(self) -> int:
        """Alerts that the rate limit kept back so far."""
        return int(self._alarm.suppressed_total)

    @property
    def active(self) -> str | None:
        """The level that holds now, whether or not its alert was kept back."""
        index = self._alarm.active
        return None if index is None else self.levels[index].name

    def update(self, time_s: float, value: float) -> Alert | None:
        """Takes the value at a time (any steady clock, seconds); an alert where there is something new to say."""
        said = self._alarm.update(time_s, value)
        if said is None:
            return None
        level = self.levels[said[0]]
        return Alert(level.name, value, level.threshold, time_s, said[1])
