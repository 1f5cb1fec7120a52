"""Names for the parts of a program's run, and ends of steps, in its recording."""

from ._recorded.phases import phase as phase
from ._recorded.phases import step as step
