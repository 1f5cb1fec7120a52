"""Ranks on one clock: which rose first."""

from ._analysis.ranks import CrossRankMergeResult as CrossRankMergeResult
from ._analysis.ranks import FirstCauseAnalysisResult as FirstCauseAnalysisResult
from ._analysis.ranks import FirstCauseSuspect as FirstCauseSuspect
from ._analysis.ranks import LEAST_RISE_BYTES as LEAST_RISE_BYTES
from ._analysis.ranks import LEAST_RISE_SHARE as LEAST_RISE_SHARE
from ._analysis.ranks import RankTimelinePoint as RankTimelinePoint
from ._analysis.ranks import analyze_cross_rank_events as analyze_cross_rank_events
from ._analysis.ranks import merge_cross_rank_timelines as merge_cross_rank_timelines
from ._analysis.ranks import summarize_cross_rank_analysis as summarize_cross_rank_analysis
