"""When memory will reach its limit at the current rate."""

from ._tracking.forecast import Forecast as Forecast
from ._tracking.forecast import MAX_HORIZON as MAX_HORIZON
from ._tracking.forecast import MAX_POINTS as MAX_POINTS
from ._tracking.forecast import MIN_POINTS as MIN_POINTS
from ._tracking.forecast import SIGNIFICANCE as SIGNIFICANCE
from ._tracking.forecast import forecast_time_to_limit as forecast_time_to_limit
