"""When to alert: thresholds with hysteresis and a rate limit, by the same code as the command."""

from ._tracking.alarm import Alarm as Alarm
from ._tracking.alarm import Alert as Alert
from ._tracking.alarm import DEFAULT_HYSTERESIS as DEFAULT_HYSTERESIS
from ._tracking.alarm import Level as Level
