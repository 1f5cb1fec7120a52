"""gpumemprof's package in a recorded process, under a name that no program has: one may have a package `gpumemprof` of
its own, and gets that. Its modules import each other by relative names alone.

A line in a .pth file loads it into every program of an environment that is recorded:
`import os; os.environ.get("GPUMEMPROF_DIR") and __import__("_gpumemprof_recorded")`
"""

import os

__path__ = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpumemprof")]

from ._recorded import autostart  # noqa: E402, F401
