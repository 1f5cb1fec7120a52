"""Memory outside of the allocator beside collectives, on telemetry with known answers."""

import pytest
from made_results import MIB, START_S, samples

from gpumemprof import MemoryAnalyzer
from gpumemprof.collective_attribution import attribute_collective_memory, resolve_collective_attribution_config

GIB = 2**30
TOTAL = 80 * GIB
FLAT = [10 * GIB] * 40


def rank(number, at=(), rise=6 * GIB, total=TOTAL):
    """40 samples, one every 0.1 s; the gap is 2 GiB, and `rise` more at the samples `at`."""
    used = [12 * GIB + (rise if i in at else 0) for i in range(40)]
    return samples(FLAT, used=used, total=total, rank=number)


def mark(number, at, **fields):
    event = dict(rank(number)[0], timestamp_ns=int((START_S + at * 0.1) * 1e9), event_type="mark")
    return {**event, **fields}


def test_a_rise_at_a_named_collective_on_all_ranks_is_confident():
    events = rank(0, at=[20, 21]) + rank(1, at=[20]) + [mark(0, 20, context="nccl:all_reduce")]
    first, second = MemoryAnalyzer().analyze_collective_attribution(events)
    assert (first.rank, second.rank) == (0, 1)
    assert first.classification == "confident" and first.confidence == 1.0  # 0.5 + 0.35 + 0.15
    assert first.reason_codes == ["marker", "synchronous_ranks"]
    assert first.evidence.rise_bytes == 6 * GIB and first.evidence.baseline_gap_bytes == 2 * GIB
    assert first.interval_end_ns - first.interval_start_ns == 100_000_000
    assert second.reason_codes == ["no_marker", "synchronous_ranks"]
    assert (second.classification, second.confidence) == ("suspect", 0.5)  # 0.35 + 0.15


def test_a_phase_covers_a_rise_in_its_middle():
    begin = mark(0, 5, event_type="phase_enter", metadata={"phase": "all_gather"})
    end = mark(0, 35, event_type="phase_exit", metadata={"phase": "all_gather"}, context="all_gather")
    (result,) = attribute_collective_memory(rank(0, at=[20]) + [begin, end])
    assert result.evidence.markers == ["all_gather"] and result.reason_codes == ["marker", "single_rank"]
    assert (result.classification, result.confidence) == ("likely", 0.65)


def test_a_rise_that_nothing_goes_with_is_left_to_the_gap_analysis():
    found = attribute_collective_memory(rank(0, at=[20]) + rank(1, at=[5]))
    assert found == [] and found.unknown == ""


def test_words_that_only_contain_a_collectives_name_are_no_marks():
    assert attribute_collective_memory(rank(0, at=[20]) + [mark(0, 20, context="broadcasting_shapes")]) == []


def test_a_mark_far_from_the_rise_does_not_count():
    assert attribute_collective_memory(rank(0, at=[20]) + [mark(0, 25, context="barrier")]) == []


def test_a_small_rise_is_none():
    events = rank(0, at=[20], rise=100 * MIB) + [mark(0, 20, context="barrier")]
    assert attribute_collective_memory(events) == []
    assert attribute_collective_memory(events, overrides={"min_gap_bytes": 64 * MIB, "min_gap_ratio": 0.001}) != []


def test_the_allocators_own_figure_is_no_gap():
    events = samples(FLAT, used=FLAT, total=TOTAL)
    found = attribute_collective_memory(events)
    assert found == [] and "outside of the allocator" in found.unknown


@pytest.mark.parametrize(("preset", "overrides"), [("huge", None), ("low", {"window": 1}), ("low", {"preset": "high"})])
def test_a_preset_or_threshold_that_there_is_not_is_refused(preset, overrides):
    with pytest.raises(ValueError, match="preset|threshold"):
        resolve_collective_attribution_config(preset, overrides)


def test_the_report_holds_both_analyses_of_ranks():
    events = rank(0, at=[20]) + rank(1, at=[20]) + [mark(0, 20, metadata={"collective": "my ring"})]
    report = MemoryAnalyzer().generate_optimization_report(events=events)
    assert [one["rank"] for one in report["collective_attribution"]] == [0, 1]
    assert report["collective_attribution"][0]["evidence"]["markers"] == ["my ring"]
    assert report["cross_rank_analysis"]["participating_ranks"] == [0, 1]
