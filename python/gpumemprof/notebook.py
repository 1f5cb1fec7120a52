"""Jupyter: `%load_ext gpumemprof.notebook`, then `%%gpumemprof` above a cell or `%gpumemprof EXPRESSION`."""

from ._profiling.notebook import CellReport as CellReport
from ._profiling.notebook import html_of as html_of
from ._profiling.notebook import load_ipython_extension as load_ipython_extension
from ._profiling.notebook import text_of as text_of
from ._profiling.notebook import unload_ipython_extension as unload_ipython_extension
