"""A live page of a profiler or tracker, served by a thread of this process, on the loopback address only."""

from .visualizer.dashboard import Dashboard as Dashboard
