"""The memory of a transformer from its configuration alone: `estimate_config`."""

from ._analysis.configuration import estimate_config as estimate_config
