"""MemoryAnalyzer on series whose answer is known, and on what real profilers, trackers and files hold."""

import csv
import json
import random

import pytest
from made_results import MIB, result, samples, training

from gpumemprof import MemoryAnalyzer
from gpumemprof._analysis.correlation import ranks, spearman
from gpumemprof._analysis.free_blocks import free_blocks_of
from gpumemprof._analysis.recordings import of_analysis
from gpumemprof._core.printed import format_size


def types(leaks):
    return [leak["type"] for leak in leaks]


@pytest.fixture
def analyzer():
    return MemoryAnalyzer()


def test_a_steady_leak_is_found_with_its_bytes_a_second(analyzer):
    events = samples([100 * MIB + i * 5 * MIB for i in range(40)])
    (leak,) = analyzer.detect_memory_leaks(events)
    assert leak["type"] == "monotonic_increase"
    assert "Memory shows monotonic increase in 100% of samples" in leak["description"]
    assert leak["evidence"]["bytes_per_second"] == pytest.approx(50 * MIB)  # 5 MiB every 0.1 s


def test_five_megabytes_a_call_are_found_in_the_function_that_leaves_them(analyzer):
    results = [
        result("leaky", i, 0.5, i * 5_000_000, i * 5_000_000 + 9_000_000, (i + 1) * 5_000_000) for i in range(15)
    ]
    leaks = analyzer.detect_memory_leaks(results)
    assert {leak.get("function") for leak in leaks if leak["type"] == "monotonic_increase"} == {None, "leaky"}


def test_what_calls_return_and_their_caller_drops_is_no_leak(analyzer):
    results = [result("make", i, 0.5, 0, 10 * MIB, 10 * MIB) for i in range(20)]
    assert analyzer.detect_memory_leaks(results) == []
    assert "kept" not in {one.category for one in analyzer.generate_performance_insights(results)}
    kept = [result("keep", i, 0.5, i * 10 * MIB, (i + 1) * 10 * MIB, (i + 1) * 10 * MIB) for i in range(20)]
    (insight,) = [one for one in analyzer.generate_performance_insights(kept) if one.category == "kept"]
    assert insight.data == {"function": "keep", "kept_bytes": 190 * MIB}  # nobody looked after the last one


def test_one_step_up_is_no_leak(analyzer):
    assert types(analyzer.detect_memory_leaks([400 * MIB] * 20 + [600 * MIB] * 20)) == []


def test_one_large_call_among_calls_that_keep_nothing_is_no_leak(analyzer):
    levels = [0, 200 * MIB, *[200 * MIB] * 8]
    results = [result("f", i, 0.5, levels[i], levels[i] + MIB, levels[i + 1]) for i in range(9)]
    assert analyzer.detect_memory_leaks(results) == []


def test_the_leaking_one_of_two_functions_is_named(analyzer):
    leaks = analyzer.detect_memory_leaks(training(epochs=12, leak_bytes=8 * MIB))
    # load_batch leaves 32 MiB behind every time; that train_step takes them away again is no concern of its own
    # calls.
    assert "load_batch" in {leak.get("function") for leak in leaks}


def test_training_that_gives_everything_back_has_no_leak_of_its_own(analyzer):
    leaks = analyzer.detect_memory_leaks([r for r in training(epochs=40) if r.function_name == "evaluate"])
    assert leaks == [] and leaks.unknown == ""


def test_sensitivity_decides_what_growth_counts():
    slow = [1000 * MIB + i * MIB // 4 for i in range(60)]  # 15 MiB on 1000: 1.5 %
    assert MemoryAnalyzer().detect_memory_leaks(slow) == []
    assert types(MemoryAnalyzer(sensitivity=0.01).detect_memory_leaks(slow)) == ["monotonic_increase"]


@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, float("nan")])
def test_a_sensitivity_without_meaning_is_refused(sensitivity):
    with pytest.raises(ValueError, match="sensitivity"):
        MemoryAnalyzer(sensitivity=sensitivity)


def test_nothing_measured_has_no_score_and_says_why(analyzer):
    report = analyzer.generate_optimization_report()
    assert report["optimization_score"] is None
    assert "nothing was measured" in report["optimization_score_reason"]
    assert report["recommendations"] and all(text.startswith("General: ") for text in report["recommendations"])
    leaks = analyzer.detect_memory_leaks([])
    assert leaks == [] and leaks.unknown == "there are no results"


def test_totals_without_a_series_say_that_they_cannot_tell(analyzer):
    leaks = analyzer.detect_memory_leaks({"peak_memory": 5, "total_events": 2})
    assert leaks == [] and "no samples over time" in leaks.unknown


def test_two_calls_have_no_leak_and_say_that_they_cannot_tell(analyzer):
    leaks = analyzer.detect_memory_leaks(training(epochs=1))
    assert leaks == [] and leaks.unknown == "there are 4 samples; it takes at least 6"
    assert analyzer.detect_memory_leaks([MIB]).unknown == "there is 1 sample; it takes at least 6"


def test_what_is_no_source_is_named(analyzer):
    with pytest.raises(TypeError, match="cannot analyze an object of type int"):
        analyzer.detect_memory_leaks(5)
    with pytest.raises(TypeError, match="cannot analyze a list of object"):
        analyzer.detect_memory_leaks([object()])


def test_the_score_is_the_weighted_mean_of_the_parts_that_are_known(analyzer):
    report = analyzer.generate_optimization_report(
        samples([100 * MIB + i * 5 * MIB for i in range(40)], total=1000 * MIB)
    )
    known = [part for part in report["optimization_score_parts"] if part["value"] is not None]
    mean = sum(p["value"] * p["weight"] for p in known) / sum(p["weight"] for p in known)
    assert report["optimization_score"] == pytest.approx(mean)
    assert {p["name"]: p["value"] for p in known}["peak"] == 10  # 295 MiB of 1000


def test_memory_that_rises_faster_and_faster_has_no_score_and_says_why(analyzer):
    report = analyzer.generate_optimization_report([MIB * 1.5**i for i in range(40)])
    assert report["optimization_score"] is None
    assert report["optimization_score_reason"].startswith("memory rises to the end")
    known = {part["name"]: part["value"] for part in report["optimization_score_parts"]}
    assert known["growth"] is None and known["spikes"] == 10


def test_a_peak_near_the_limit_costs_score_and_is_advised_on(analyzer):
    report = analyzer.generate_optimization_report(samples([100 * MIB] * 19 + [950 * MIB], total=1000 * MIB))
    parts = {part["name"]: part["value"] for part in report["optimization_score_parts"]}
    assert parts["peak"] == pytest.approx(10 * (1 - (0.95 - 0.8) / 0.2))
    assert any("(peak: peak of 950 MiB against 1000 MiB)" in text for text in report["recommendations"])


def test_every_finding_costs_score_and_has_its_advice(analyzer):
    good = [100 * MIB] * 40
    leak = [100 * MIB + i * 5 * MIB for i in range(40)]
    spike = [100 * MIB] * 25 + [400 * MIB] + [100 * MIB] * 14
    scores = {}
    for name, series in (("good", good), ("leak", leak), ("spike", spike)):
        report = analyzer.generate_optimization_report(series)
        scores[name] = report["optimization_score"]
        for finding in report["leaks"]:
            assert any(finding["description"] in text for text in report["recommendations"])
    assert scores["good"] == 10 and scores["leak"] < 7 and scores["spike"] < 10


def test_a_function_whose_calls_keep_more_and_more_costs_growth_where_the_whole_series_does_not_grow(analyzer):
    level = 100 * MIB
    calls = [result("steady", i, 0.5, level, level + MIB, level) for i in range(90)]
    report = analyzer.generate_optimization_report(calls)
    good = {part["name"]: part["value"] for part in report["optimization_score_parts"]}
    assert (good["growth"], good["cleanup"]) == (10, 10)
    for i in range(10):
        before = level + 4 * i * MIB
        calls.append(result("leaky", 90 + i, 0.5, before, before + 4 * MIB, before + 4 * MIB))
    report = analyzer.generate_optimization_report(calls)
    assert [leak["function"] for leak in report["leaks"]] == ["leaky"]
    parts = {part["name"]: part for part in report["optimization_score_parts"]}
    # What is known to stay after each of nine calls: 104 to 136 MiB.
    assert parts["growth"]["value"] == pytest.approx(6 - 6 * 32 / 104)
    assert parts["growth"]["reason"] == "calls of leaky keep 32.0 MiB more"
    assert (parts["cleanup"]["value"], parts["cleanup"]["reason"]) == (None, "memory grows to the end")


def test_a_gap_costs_score(analyzer):
    allocated, total = [10 * 2**30] * 30, 80 * 2**30
    none = analyzer.generate_optimization_report(samples(allocated, used=[v + MIB for v in allocated], total=total))
    gap = analyzer.generate_optimization_report(samples(allocated, used=[40 * 2**30] * 30, total=total))
    assert gap["optimization_score"] < none["optimization_score"]
    assert [finding["classification"] for finding in gap["gap_analysis"]] == ["steady_offset"]


def test_the_report_is_plain_json_with_the_documented_keys(analyzer):
    report = analyzer.generate_optimization_report(training(leak_bytes=8 * MIB))
    document = json.loads(json.dumps(report))
    assert {"summary", "critical_issues", "high_impact_insights", "all_patterns", "all_insights", "recommendations",
            "optimization_score", "gap_analysis", "leaks"} <= document.keys()  # fmt: skip
    assert document["summary"]["total_function_calls"] == 27
    assert document["summary"]["peak_memory"] == (200 + 8 * 11 + 311) * MIB  # of the last step
    assert all(isinstance(text, str) for text in document["recommendations"])


def test_patterns_have_the_documented_types(analyzer):
    def of(series):
        return [pattern.pattern_type for pattern in analyzer.analyze_memory_patterns(series)]

    assert of([100 * MIB + i * 5 * MIB for i in range(40)]) == ["steady_growth"]
    assert of([(100 + 50 * (i % 5)) * MIB for i in range(60)]) == ["sawtooth"]
    assert of([100 * MIB] * 25 + [400 * MIB] + [100 * MIB] * 14) == ["spike"]


def test_fragmentation_is_told_from_free_blocks_between_blocks_in_use(analyzer):
    def segment(*blocks):
        return {"device": 0, "blocks": [{"size": size, "state": state} for size, state in blocks]}

    used, free = "active_allocated", "inactive"
    split = [segment((MIB, used), (4 * MIB, free), (MIB, used)) for _ in range(10)]
    cached = [segment((512 * MIB, free))]
    assert free_blocks_of(split).free_bytes == 40 * MIB and free_blocks_of(split).largest_bytes == 4 * MIB
    assert free_blocks_of(cached).free_bytes == 0  # cache is given back when memory is short
    (pattern,) = analyzer.analyze_memory_patterns([100 * MIB] * 20, memory_segments=split)
    assert pattern.pattern_type == "fragmentation" and pattern.metrics["fragmentation_index"] == pytest.approx(0.9)
    assert analyzer.analyze_memory_patterns([100 * MIB] * 20, memory_segments=cached) == []


def test_reserved_memory_that_is_not_allocated_is_no_fragmentation(analyzer):
    events = samples([MIB] * 30, reserved=[1000 * MIB] * 30)
    assert analyzer.analyze_memory_patterns(events) == []


def test_calls_that_use_more_memory_and_take_longer_are_an_insight(analyzer):
    results = [result("f", i, 0.1 + i / 100, 0, (i + 1) * MIB, 0) for i in range(12)]
    insight = analyzer.generate_performance_insights(results)[0]
    assert insight.category == "memory_time_correlation" and insight.data["spearman_rho"] == pytest.approx(1)
    assert "f that use more memory take longer" in insight.description


def test_memory_and_time_without_a_relation_are_no_insight(analyzer):
    order = random.Random(3)
    results = [result("f", i, 0.1 + order.random(), 0, (1 + order.randrange(50)) * MIB, 0) for i in range(30)]
    assert not [i for i in analyzer.generate_performance_insights(results) if i.category == "memory_time_correlation"]


def test_nine_calls_are_too_few_to_correlate(analyzer):
    results = [result("f", i, 0.1 + i / 100, 0, (i + 1) * MIB, 0) for i in range(9)]
    assert not [i for i in analyzer.generate_performance_insights(results) if i.category == "memory_time_correlation"]
    assert "10 calls" in analyzer.generate_optimization_report(results)["unknown"]["memory_time_correlation"]


def test_a_peak_within_calls_is_the_peak_that_insights_name(analyzer):
    results = [result("f", i, 0.5, 10 * MIB, 110 * MIB, 10 * MIB) for i in range(12)]
    (insight,) = [i for i in analyzer.generate_performance_insights(results) if i.title == "Time near the peak"]
    assert insight.description == (
        "The peak of 110 MiB was between samples, which saw at most 10.0 MiB: how long memory was near it is unknown")
    assert insight.data == {"share_of_time": None, "peak_bytes": 110 * MIB, "sampled_peak_bytes": 10 * MIB}
    level = [result("f", i, 0.5, 10 * MIB, 10 * MIB, 10 * MIB) for i in range(12)]
    (insight,) = [i for i in analyzer.generate_performance_insights(level) if i.title == "Time near the peak"]
    assert insight.description == "Memory was within 10 % of its peak of 10.0 MiB for 100.0 % of the time"


def test_calls_of_no_duration_are_no_error(analyzer):
    assert analyzer.generate_performance_insights([result("f", 0, 0.0, 0, MIB, 0)] * 12)


def test_spearman_is_that_of_the_published_example():
    """IQ against hours of television a week, in the English Wikipedia's article: rho = -29/165."""
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    rho, p = spearman(iq, hours)
    assert rho == pytest.approx(-29 / 165)
    assert p == pytest.approx(0.627, abs=0.03)  # of the t-distribution there; ours is an approximation
    assert ranks([3, 1, 3, 2]) == [3.5, 1, 3.5, 2]


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (64 * MIB, "64.0 MiB"),
                                            (-5 * 2**30, "-5.00 GiB"), (1023.9 * MIB, "1.00 GiB")])  # fmt: skip
def test_sizes_have_three_figures(size, text):
    assert format_size(size) == text


def test_a_file_says_what_the_events_in_memory_say(analyzer, tmp_path):
    records = samples([100 * MIB + i * 5 * MIB for i in range(40)])
    (tmp_path / "a.json").write_text(json.dumps(records))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with open(tmp_path / "a.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows({**record, "metadata": json.dumps(record["metadata"])} for record in records)
    expected = analyzer.detect_memory_leaks(records)
    assert types(expected) == ["monotonic_increase"]
    for name in ("a.json", "a.jsonl", "a.csv"):
        assert analyzer.detect_memory_leaks(tmp_path / name) == expected, name


def test_a_file_that_is_none_of_ours_is_refused_in_one_line(analyzer, tmp_path):
    (tmp_path / "x.json").write_bytes(b"\x00\xff not ours")
    with pytest.raises(ValueError) as error:
        analyzer.detect_memory_leaks(str(tmp_path / "x.json"))
    assert "\n" not in str(error.value)
    with pytest.raises(OSError):
        analyzer.detect_memory_leaks(str(tmp_path / "absent.json"))


def test_a_real_tracker_gives_the_same_as_its_statistics_and_its_file(analyzer, tmp_path):
    import time

    from gpumemprof import MemoryTracker

    tracker = MemoryTracker(device="cpu", sampling_interval=0.01)
    tracker.start_tracking()
    time.sleep(0.3)
    statistics = tracker.stop_tracking()
    tracker.export_events(tmp_path / "t.json")
    reports = [
        analyzer.generate_optimization_report(source) for source in (tracker, statistics, str(tmp_path / "t.json"))
    ]
    assert len({report["summary"]["basis"] for report in reports}) == 1
    assert all(isinstance(report["optimization_score"], float) for report in reports)


def test_a_real_profiler_gives_a_score_and_names_its_functions(analyzer):
    from gpumemprof import GPUMemoryProfiler

    profiler = GPUMemoryProfiler(device="cpu")
    for _ in range(3):
        profiler.profile_function(lambda: bytearray(8 * MIB))
    for source in (profiler, profiler.results, profiler.get_summary()):
        report = analyzer.generate_optimization_report(source)
        assert report["summary"]["total_function_calls"] == 3
        assert f"{report['optimization_score']:.1f}"
    assert MemoryAnalyzer(profiler).generate_optimization_report()["summary"]["total_function_calls"] == 3


def test_a_recording_has_the_exact_peak(analyzer, record, light):
    folder = record([light.program, "100"], env=light.env).ok().folder
    report = analyzer.generate_optimization_report(folder)
    # Blocks of 1000, 1001, … bytes, every second one freed at once: the even ones, and the last odd one.
    assert report["summary"]["peak_memory"] == sum(1000 + i for i in range(0, 100, 2)) + 1099
    assert report["summary"]["basis"] == "exact"


def test_a_damaged_file_is_a_value_error_of_one_line_at_every_byte(analyzer, tmp_path):
    whole = json.dumps(
        {"summary": {"basis": "exact"}, "results": [r.to_dict() for r in training(1)], "snapshots": []}
    )
    path = tmp_path / "saved.json"
    path.write_text(whole)
    assert analyzer.generate_optimization_report(path)["summary"]["total_function_calls"] == 2
    order = random.Random(5)
    damaged = [whole[:cut] for cut in range(0, len(whole), 7)]
    damaged += [whole[:i] + order.choice('{}[]",:0x') + whole[i + 1 :] for i in range(0, len(whole), 7)]
    damaged += [whole.replace("1", "1e999"), whole.replace("2", "NaN"), whole.replace('"results"', '"timestamps"')]
    damaged += ['{"a":' * 100_000, '{"results": 5}', '{"timestamps": [1], "memory_usage": ["x"]}']
    refused = 0
    for text in damaged:
        path.write_text(text)
        try:
            analyzer.generate_optimization_report(path)
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > len(damaged) / 2


def test_the_leaks_of_a_recording_are_those_of_the_command(analyzer):
    def device(name, layer, highest):
        return {"device": name, "layer": layer,
                "timeline": {"start_ns": 0, "bucket_ns": 10**9, "min_bytes": [0] * 8, "max_bytes": [highest] * 8}}

    recorded = {
        "schema": "gpumemprof.analysis/1",
        "devices": [device("tensorflow:mklcpu regions", "driver", 64 * MIB),
                    device("tensorflow:mklcpu", "allocator", 40 * MIB)],
        "findings": [
            {"kind": "spike", "title": "memory spikes, as its work does", "severity": "info"},
            {"kind": "spike", "title": "memory spikes in step 9", "severity": "warning"},
            {"kind": "leak", "title": "a.py:3 keeps 1.00 MiB more with every step", "severity": "warning",
             "bytes": 30 * MIB, "confidence": 0.99, "evidence": {"bytes_a_step": MIB}, "fix": "drop it"},
        ],
    }
    assert of_analysis(recorded).device == "tensorflow:mklcpu"
    assert analyzer.detect_memory_leaks(recorded) == [
        {"type": "spikes", "description": "memory spikes in step 9", "severity": "warning", "bytes": None,
         "confidence": None, "evidence": None, "fix": None},
        {"type": "monotonic_increase", "description": "a.py:3 keeps 1.00 MiB more with every step",
         "severity": "warning", "bytes": 30 * MIB, "confidence": 0.99, "evidence": {"bytes_a_step": MIB},
         "fix": "drop it"},
    ]  # fmt: skip
