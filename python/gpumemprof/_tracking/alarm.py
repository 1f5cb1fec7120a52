"""When to alert: thresholds with hysteresis and a rate limit, by the same code as the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._core.native import native

DEFAULT_HYSTERESIS = 0.05  # of the total: 80 % is left again below 75 %


@dataclass(frozen=True)
class Level:
    """A level of an alarm, entered at `threshold` (in the unit of the value, often a share of the total)."""

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
    """Alerts when a value enters a level, and again only after it has left that level.

    A level is left below threshold − hysteresis, so a value that fluctuates around a threshold alerts once. Alerts of
    one level are at least `min_interval_s` apart (None: a minute, as in the command). An alert that the limit delayed
    is sent when the interval is over, if the level still holds. A lower level never delays the alert of a higher one.
    Not thread-safe.
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
        """The number of alerts that the rate limit has held back."""
        return int(self._alarm.suppressed_total)

    @property
    def active(self) -> str | None:
        """The current level, whether or not its alert was held back."""
        index = self._alarm.active
        return None if index is None else self.levels[index].name

    def update(self, time_s: float, value: float) -> Alert | None:
        """Takes the value at a time (seconds of any steady clock) and returns an alert, or None."""
        said = self._alarm.update(time_s, value)
        if said is None:
            return None
        level = self.levels[said[0]]
        return Alert(level.name, value, level.threshold, time_s, said[1])
