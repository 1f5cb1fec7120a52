"""Predicts a function's GPU memory without a GPU: `gpumemprof.estimate(step, model, batch)`."""

from ._analysis.estimation import Estimate as Estimate
from ._analysis.estimation import EstimateError as EstimateError
from ._analysis.estimation import estimate as estimate
