"""The gap between the device's use and the allocator's reservations, on telemetry with known answers."""

from made_results import MIB, samples

from gpumemprof import MemoryAnalyzer, TelemetryEventV2

GIB = 2**30
TOTAL = 80 * GIB
FLAT = [10 * GIB] * 60


def gaps(events):
    return MemoryAnalyzer().analyze_memory_gaps(events)


def kinds(events):
    return [finding.classification for finding in gaps(events)]


def test_memory_outside_of_the_allocator_that_grows_is_a_drift():
    used = [12 * GIB + i * 100 * MIB for i in range(60)]
    (finding, *_) = gaps(samples(FLAT, used=used, total=TOTAL))
    assert finding.classification == "persistent_drift"
    assert finding.evidence["bytes_per_second"] == 1000 * MIB  # 100 MiB every 0.1 s
    assert finding.remediation and 0 < finding.confidence <= 1


def test_memory_outside_of_the_allocator_that_comes_and_goes_is_a_spike():
    used = [12 * GIB] * 60
    used[40] = 30 * GIB
    (finding,) = gaps(samples(FLAT, used=used, total=TOTAL))
    assert (finding.classification, finding.severity, finding.evidence["bytes"]) == (
        "transient_spike",
        "critical",
        18 * GIB,
    )


def test_a_third_of_the_device_in_other_hands_is_told():
    (finding,) = gaps(samples(FLAT, used=[10 * GIB + 30 * GIB] * 60, total=TOTAL))
    assert (finding.classification, finding.severity) == ("steady_offset", "warning")
    assert finding.description == "30.0 GiB of the device's 80.0 GiB are in use outside of the allocator"


def test_a_drift_of_less_than_a_hundredth_of_the_device_is_none():
    used = [12 * GIB + i * MIB for i in range(60)]
    assert kinds(samples(FLAT, used=used, total=TOTAL)) == []


def test_free_blocks_between_blocks_in_use_are_fragmentation():
    events = samples(FLAT, used=[11 * GIB] * 60, total=TOTAL, inactive=4 * GIB)
    (finding,) = gaps(events)
    assert finding.classification == "fragmentation_like"
    assert finding.evidence["median_inactive_share_of_reserved"] == 0.4


def test_cache_slack_is_no_fragmentation():
    events = samples([GIB] * 60, used=[11 * GIB] * 60, reserved=FLAT, total=TOTAL)
    assert kinds(events) == []


def test_use_that_repeats_the_allocators_figure_is_no_measurement():
    found = gaps(samples(FLAT, used=FLAT, total=TOTAL))
    assert found == [] and "allocator's own figure" in found.unknown


def test_use_that_is_not_known_is_said_to_be_unknown():
    found = gaps(samples(FLAT))
    assert found == [] and found.unknown == "0 samples have both the device's use and the reserved bytes; 6 are needed"


def test_another_devices_use_is_not_taken_for_a_gap():
    found = gaps(samples(FLAT, used=[GIB] * 60, total=TOTAL))
    assert found == [] and found.unknown == "in 60 of 60 samples reserved bytes exceed the device's use"


def test_ranks_are_judged_apart():
    calm = samples(FLAT, used=[11 * GIB] * 60, total=TOTAL, rank=0)
    drifting = samples(FLAT, used=[12 * GIB + i * 100 * MIB for i in range(60)], total=TOTAL, rank=1)
    mixed = [event for pair in zip(calm, drifting, strict=True) for event in pair]
    assert {finding.evidence["rank"] for finding in gaps(mixed)} == {1}


def test_events_as_objects_say_the_same_as_records():
    records = samples(FLAT, used=[40 * GIB] * 60, total=TOTAL)
    assert kinds([TelemetryEventV2(**record) for record in records]) == kinds(records) == ["steady_offset"]


def test_no_event_is_said_to_be_none():
    assert gaps([]).unknown == "there are no samples"
