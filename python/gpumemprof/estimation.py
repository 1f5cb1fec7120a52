"""What a function will need on a GPU, before it runs on one: `gpumemprof.estimate(step, model, batch)`."""

from ._analysis.estimation import Estimate as Estimate
from ._analysis.estimation import EstimateError as EstimateError
from ._analysis.estimation import estimate as estimate
