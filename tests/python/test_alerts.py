"""Alarms: hysteresis and a rate limit, on series with known answers."""

import pytest

from gpumemprof._tracking.alerts import DEFAULT_THRESHOLDS, TrackerAlerts, pressure_bytes, utilization
from gpumemprof.alerts import Alarm, Level
from gpumemprof.device_collectors import DeviceMemorySample


def alarm(**options):
    options = {"hysteresis": 0.05, "min_interval_s": 10, **options}
    return Alarm([Level("warning", 0.8), Level("critical", 0.95)], **options)


def said(subject, values, step_s=1.0):
    """[(time, level)] of a series with one value a step."""
    found = [(n * step_s, subject.update(n * step_s, value)) for n, value in enumerate(values)]
    return [(time, alert.level) for time, alert in found if alert is not None]


def test_a_level_speaks_once_while_it_holds():
    assert said(alarm(), [0.5, 0.8, 0.85, 0.9] + [0.81] * 100) == [(1, "warning")]


def test_a_value_that_trembles_around_its_threshold_speaks_once():
    assert said(alarm(min_interval_s=0), [0.79, 0.81] * 100) == [(1, "warning")]


def test_a_level_that_was_left_speaks_again():
    assert said(alarm(min_interval_s=0), [0.8, 0.74, 0.8]) == [(0, "warning"), (2, "warning")]


def test_a_higher_level_speaks_at_once_and_the_way_down_is_quiet():
    assert said(alarm(), [0.8, 0.95, 0.89, 0.85, 0.5]) == [(0, "warning"), (1, "critical")]


def test_a_jump_over_a_level_speaks_for_the_highest_only():
    assert said(alarm(), [0.5, 0.99]) == [(1, "critical")]


def test_alerts_of_a_level_keep_their_distance_and_count_what_was_kept_back():
    subject = alarm()
    values = [0.8, 0.5] * 10  # enters every 2 s, speaks every 10 s
    assert said(subject, values) == [(0, "warning"), (10, "warning")]
    assert subject.suppressed_total == 8
    assert subject.update(20, 0.8).suppressed == 4


def test_an_alert_that_was_kept_back_comes_when_its_level_still_holds():
    subject = alarm()
    assert said(subject, [0.8, 0.5] + [0.8] * 10) == [(0, "warning"), (10, "warning")]
    assert said(alarm(), [0.8, 0.5, 0.8, 0.5] + [0.5] * 20) == [(0, "warning")]


@pytest.mark.parametrize("arguments", [([],), ([Level("a", 1)], -1), ([Level("a", 1)], 0, -1)])
def test_an_alarm_that_makes_no_sense_is_an_error(arguments):
    with pytest.raises(ValueError):
        Alarm(*arguments)


def sample(allocated=0, reserved=None, used=None, total=1000, inactive=None):
    return DeviceMemorySample(allocated, reserved, used, None, total, None, inactive, 0)


def test_pressure_is_the_highest_of_allocated_reserved_and_used():
    assert pressure_bytes(sample(100, 300, 200)) == 300
    assert utilization(sample(100, 300, 900)) == 0.9
    assert utilization(sample(100, total=None)) is None


def messages(samples, thresholds=DEFAULT_THRESHOLDS):
    alerts = TrackerAlerts(dict(thresholds), 30.0, 0.05)
    found = [alerts.update(n, one, change, thresholds) for n, (one, change) in enumerate(samples)]
    return [[(m.level, m.metadata["alert"]) for m in some] for some in found]


def test_reserved_memory_warns_also_where_little_of_it_is_allocated():
    assert messages([(sample(100, 970), 0)]) == [[("critical", "memory_usage")]]


def test_a_device_that_others_have_filled_warns():
    assert messages([(sample(1, 1, 850), 0)]) == [[("warning", "memory_usage")]]


def test_a_jump_warns_with_its_size():
    change = 101 << 20
    assert messages([(sample(), 0), (sample(), change), (sample(), 0)]) == [[], [("warning", "large_allocation")], []]


def test_cached_memory_is_no_fragmentation_but_free_pieces_are():
    assert messages([(sample(100, 700, inactive=0), 0)]) == [[]]
    assert messages([(sample(100, 700, inactive=300), 0)]) == [[("warning", "fragmentation")]]
    assert messages([(sample(100, 700, inactive=None), 0)]) == [[]]  # not known is no alert


def test_changed_thresholds_count_from_the_next_sample():
    alerts = TrackerAlerts(dict(DEFAULT_THRESHOLDS), 30.0, 0.05)
    assert alerts.update(0, sample(500), 0, DEFAULT_THRESHOLDS) == []
    lower = {**DEFAULT_THRESHOLDS, "memory_warning_percent": 40.0}
    (message,) = alerts.update(1, sample(500), 0, lower)
    assert (message.level, message.metadata["threshold"]) == ("warning", 0.4)
    assert message.text == "Memory usage at 50.0 % of 0.0 MiB"
