"""Who rose first, on ranks whose order is known."""

from made_results import MIB, START_S, samples

from gpumemprof import MemoryAnalyzer

GIB = 2**30


def rank_that_rises(rank, at, count=60, start_s=0.0, step=2 * GIB, host="h"):
    """10 GiB, and from sample `at` on `step` more; begins `start_s` after the others."""
    used = [10 * GIB + (step if i >= at else 0) for i in range(count)]
    events = samples([GIB] * count, used=used, rank=rank, interval_s=1.0)
    return [dict(e, timestamp_ns=e["timestamp_ns"] + int(start_s * 1e9), host=host, world_size=4) for e in events]


def analysis(*ranks):
    return MemoryAnalyzer().analyze_cross_rank_timeline([event for events in ranks for event in events])


def order(report):
    return [(s["rank"], s["confidence"]) for s in report["first_cause_suspects"]]


def test_the_rank_that_rose_first_is_first():
    report = analysis(rank_that_rises(0, at=40), rank_that_rises(1, at=20), rank_that_rises(2, at=50))
    assert order(report) == [(1, "high"), (0, "high"), (2, "high")]
    first = report["first_cause_suspects"][0]
    assert first["timestamp_ns"] == int((START_S + 20) * 1e9)
    assert (first["rise_bytes"], first["baseline_bytes"], first["lead_over_next_ns"]) == (
        2 * GIB,
        10 * GIB,
        20 * 10**9,
    )
    assert report["cluster_onset_timestamp_ns"] == int((START_S + 40) * 1e9)


def test_a_rank_that_starts_late_is_not_shifted_to_the_start():
    late = rank_that_rises(1, at=5, start_s=30.0)  # rises 35 s after the start
    assert order(analysis(rank_that_rises(0, at=20), late))[0] == (0, "high")


def test_within_one_sampling_interval_nobody_is_surely_first():
    assert order(analysis(rank_that_rises(0, at=20), rank_that_rises(1, at=20)))[0][1] == "low"
    assert order(analysis(rank_that_rises(0, at=20), rank_that_rises(1, at=22)))[0][1] == "medium"


def test_a_staircase_is_a_rise():
    used = [10 * GIB + (i // 2) * 100 * MIB for i in range(60)]
    assert order(analysis(samples([GIB] * 60, used=used, rank=0))) == [(0, "high")]


def test_what_came_and_went_before_is_no_onset():
    used = [10 * GIB] * 60
    used[8] = 12 * GIB
    used[50:] = [13 * GIB] * 10
    (suspect,) = analysis(samples([GIB] * 60, used=used, interval_s=1.0))["first_cause_suspects"]
    assert suspect["timestamp_ns"] == int((START_S + 50) * 1e9)


def test_flat_ranks_have_no_suspect():
    assert order(analysis(rank_that_rises(0, at=99), rank_that_rises(1, at=99))) == []


def test_missing_ranks_other_jobs_and_hosts_are_named():
    other = [dict(event, job_id="other") for event in rank_that_rises(3, at=5, count=9)]
    report = analysis(rank_that_rises(0, at=20, host="a"), rank_that_rises(2, at=20, host="b"), other)
    assert report["participating_ranks"] == [0, 2] and report["missing_ranks"] == [1, 3]
    assert report["rank_sample_counts"] == {0: 60, 2: 60}
    assert len(report["notes"]) == 2 and "2 hosts" in report["notes"][0] and "9 samples" in report["notes"][1]


def test_no_sample_is_said():
    assert analysis([])["notes"] == ["there are no samples"]
