"""Fits a training step into a budget, with measured changes."""

from __future__ import annotations

from .fitting import optimize
from .result import Measure, OptimizationResult

__all__ = ["Measure", "OptimizationResult", "optimize"]
