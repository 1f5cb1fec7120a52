"""Memory per source line, on the CPU and on a GPU: what each line added, and its peak."""

import sys

from ._profiling.lines import FunctionLines as FunctionLines
from ._profiling.lines import LineFigures as LineFigures
from ._profiling.lines import LineProfiler as LineProfiler
from ._profiling.lines import LineRecord as LineRecord
from ._profiling.lines import profile_lines as profile_lines
from ._profiling.lines import run_script as run_script

if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:]))
