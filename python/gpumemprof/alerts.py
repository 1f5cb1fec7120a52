"""When to speak up: thresholds with hysteresis and a rate limit, by the core's alarm, which the command has too."""

from ._tracking.alarm import Alarm as Alarm
from ._tracking.alarm import Alert as Alert
from ._tracking.alarm import DEFAULT_HYSTERESIS as DEFAULT_HYSTERESIS
from ._tracking.alarm import Level as Level
