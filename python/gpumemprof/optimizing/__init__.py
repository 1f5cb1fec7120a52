"""Making a training step fit into a budget, every measure measured."""

from __future__ import annotations

from .fitting import optimize
from .result import Measure, OptimizationResult

__all__ = ["Measure", "OptimizationResult", "optimize"]
