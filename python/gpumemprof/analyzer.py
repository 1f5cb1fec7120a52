"""MemoryAnalyzer: leaks, patterns, insights, a score and recommendations, from anything that was measured."""

from ._analysis.analyzer import GapFinding as GapFinding
from ._analysis.analyzer import MemoryAnalyzer as MemoryAnalyzer
from ._analysis.analyzer import MemoryPattern as MemoryPattern
from ._analysis.analyzer import PerformanceInsight as PerformanceInsight
