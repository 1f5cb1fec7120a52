"""The statistics of pairs, against values worked out by hand."""
import pairs
import pytest


def test_ratio_is_the_median_of_the_ratios_of_partners_not_the_ratio_of_medians():
    # Partners 2/1, 9/3, 40/10: ratios 2, 3, 4. Ratio of medians would be 9/3 too, so skew it.
    assert pairs.ratio([2, 9, 40, 10], [1, 3, 10, 1]).median == 3.5
    assert pairs.ratio([2, 9, 40], [1, 3, 10]).median == 3


def test_a_drift_that_both_partners_share_cancels_out():
    drift = [1.0, 1.5, 2.0, 3.0]
    value = pairs.ratio([1.25 * d for d in drift], drift)
    assert (value.median, value.low, value.high) == (1.25, 1.25, 1.25)


def test_interval_of_one_value_is_the_value():
    value = pairs.estimate([7.0])
    assert (value.median, value.low, value.high, value.count) == (7.0, 7.0, 7.0, 1)


def test_interval_holds_the_median_and_stays_within_the_values():
    value = pairs.estimate([1, 2, 3, 4, 100])
    assert value.median == 3
    assert 1 <= value.low <= 3 <= value.high <= 100


def test_a_bound_is_met_up_to_half_a_percent_over_it_by_the_upper_end():
    assert pairs.ratio_is_met(pairs.Estimate(1.0, 0.99, 1.015, 60), 1.01)
    assert not pairs.ratio_is_met(pairs.Estimate(1.0, 0.99, 1.0151, 60), 1.01)


def test_difference_is_taken_partner_by_partner():
    assert pairs.difference([11, 22, 33], [10, 20, 30]).median == 2


def test_no_values_are_refused():
    with pytest.raises(ValueError):
        pairs.estimate([])
