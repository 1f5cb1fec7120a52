"""Predicts a transformer's memory from its configuration: `estimate_config`."""

from ._analysis.configuration import estimate_config as estimate_config
