"""The time to the limit, on series whose answer is known."""

import random
import statistics

import pytest

from gpumemprof import MemoryAnalyzer
from gpumemprof.forecast import forecast_time_to_limit

MIB, GIB = 1 << 20, 1 << 30


def forecast(values, limit, step_s=1.0):
    return forecast_time_to_limit([n * step_s for n in range(len(values))], values, limit)


def test_a_straight_line_meets_the_limit_when_arithmetic_says():
    found = forecast([100 + 10 * n for n in range(20)], 1000)  # 290 at the end, 10 a second
    assert found.seconds_to_limit == pytest.approx(71)
    assert found.growth_bytes_per_s == pytest.approx(10)
    assert (found.seconds_to_limit_earliest, found.seconds_to_limit_latest) == (found.seconds_to_limit,) * 2
    assert found.assumption == "memory keeps growing at the median rate of the last 19.0 s"


def test_time_scales_with_the_interval():
    assert forecast([10 * n for n in range(20)], 1000, step_s=0.1).seconds_to_limit == pytest.approx(8.1)


def test_odd_samples_do_not_move_the_rate():
    values = [100 + 10 * n for n in range(30)]
    for place in (4, 11, 18, 25):
        values[place] = 1  # dips: they cannot move the line that is raised to the highest point
    found = forecast(values, 1000)
    assert found.growth_bytes_per_s == pytest.approx(10, rel=0.05)


def test_the_peaks_of_a_sawtooth_are_what_meets_the_limit():
    # Every step rises by 900 in ten samples, falls back, and leaves 50 behind: peaks at 900, 950, … 50 in 10 s.
    values = [50 * (n // 10) + 100 * (n % 10) for n in range(200)]
    found = forecast(values, 4000)
    assert found.growth_bytes_per_s == pytest.approx(5)
    # At the last sample, n = 199, the line through the peaks is at 900 + 50 · 19.
    assert found.seconds_to_limit == pytest.approx((4000 - 1850) / 5)


def test_a_staircase_with_a_step_every_second_sample_is_growth():
    values = [100 * (n // 2) for n in range(40)]
    found = forecast(values, 10_000)
    assert found.growth_bytes_per_s == pytest.approx(50, rel=0.05)
    assert found.seconds_to_limit == pytest.approx((10_000 - values[-1]) / 50, rel=0.05)


@pytest.mark.parametrize(
    "values",
    [
        [500] * 50,
        [1000 - 3 * n for n in range(50)],
        [100] * 25 + [600] * 25,  # one jump
        [100] * 10 + [600] * 40,
        [min(30 * n, 600) for n in range(60)],  # a warm-up that has ended
        [100 * (n % 10) for n in range(200)],  # a sawtooth that leaves nothing behind
        [0, 1] * 40,
    ],
    ids=["flat", "falling", "one jump", "early jump", "warm-up", "sawtooth", "alternating"],
)
def test_where_memory_does_not_grow_there_is_no_forecast(values):
    found = forecast(values, 10_000)
    assert found.seconds_to_limit is None
    assert found.reason


def test_noise_alone_is_rarely_taken_for_growth():
    pick = random.Random(3)
    found = [forecast([pick.gauss(1000, 100) for _ in range(60)], 5000).seconds_to_limit for _ in range(200)]
    assert sum(one is not None for one in found) <= 4  # the test's level is 1 %, and both halves must grow besides


def test_growth_under_noise_is_found_and_its_interval_holds_the_truth():
    pick = random.Random(4)
    inside = rates = 0
    slopes = []
    for _ in range(100):
        found = forecast([1000 + 20 * n + pick.gauss(0, 50) for n in range(60)], 100_000)
        assert found.seconds_to_limit is not None
        slopes.append(found.growth_bytes_per_s)
        rates += 1
        room = found.growth_bytes_per_s * found.seconds_to_limit
        inside += room / found.seconds_to_limit_latest <= 20 <= room / found.seconds_to_limit_earliest
    assert statistics.median(slopes) == pytest.approx(20, rel=0.02)
    assert inside >= 85  # of 100 at 95 %: maxima of noise are not quite independent


def test_what_is_reached_needs_no_forecast():
    assert forecast([10 * n for n in range(101)], 1000).seconds_to_limit == 0


@pytest.mark.parametrize(
    ("values", "limit", "reason"),
    [
        ([1, 2, 3], 10, "fewer than 8 points in time"),
        ([], 10, "fewer than 8 points in time"),
        (list(range(20)), None, "the limit is unknown"),
        ([GIB + n for n in range(20)], 1 << 40, "the limit is more than 100 times further away than the observed time"),
    ],
)
def test_where_nothing_can_be_said_the_reason_is(values, limit, reason):
    found = forecast(values, limit)
    assert (found.seconds_to_limit, found.reason) == (None, reason)


def test_it_never_denies_growth_that_the_search_for_leaks_has_found():
    pick = random.Random(5)
    grown = kept = 0
    for _ in range(400):
        rate, noise, peak, period, warm_up = (pick.choice(c) for c in ((0, 1, 4), (0, 3), (0, 200), (3, 8), (0, 40)))
        values = [
            MIB * (100 + min(n, warm_up) + rate * n + pick.random() * noise + (peak if n % period == 0 else 0))
            for n in range(pick.choice((20, 60, 200)))
        ]
        if pick.random() < 0.3:
            values[len(values) // 3] += 900 * MIB  # higher than all that follows
        found, leaks = forecast(values, 1 << 50), MemoryAnalyzer().detect_memory_leaks(values)
        if any(leak["type"] == "monotonic_increase" for leak in leaks):
            grown += 1
            assert found.growth_bytes_per_s > 0 and found.reason != "memory is not growing", values
            kept += found.reason == "the minimum grows, but the peaks do not, so memory does not approach the limit"
    assert grown > 100 and kept > 10, (grown, kept)


def test_series_that_make_no_sense_are_errors():
    with pytest.raises(ValueError, match="2 times for 1 values"):
        forecast_time_to_limit([0, 1], [1], 10)
    with pytest.raises(ValueError, match="ascend"):
        forecast_time_to_limit([1, 0], [1, 1], 10)
