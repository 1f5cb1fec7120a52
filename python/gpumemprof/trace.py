"""A snapshot of PyTorch's memory or a recording, opened for questions: `gpumemprof.load(path)`."""

from ._analysis.trace import Events as Events
from ._analysis.trace import Trace as Trace
from ._analysis.trace import load as load
