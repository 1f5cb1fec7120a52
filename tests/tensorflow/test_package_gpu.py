"""A GPU's figures from TensorFlow's own counters, on a stand-in for a TensorFlow that has GPUs."""

import pytest
import tfmemprof
from fake_gpus import Tensor, install
from gpumemprof._analysis.measured import Call, Measured
from tfmemprof.devices import resolve_device

MIB = 1 << 20


@pytest.fixture
def tensorflow(monkeypatch):
    return install(monkeypatch)


def test_memory_growth_is_set_before_the_devices_are_made_and_left_alone_after(tensorflow):
    assert tfmemprof.TFMemoryProfiler().memory_growth == {"/GPU:0": "on"} and tensorflow.growth == [True]
    tensorflow.growth = [False]
    tensorflow.initialize()
    late = tfmemprof.TFMemoryProfiler().memory_growth
    assert late == {"/GPU:0": "unchanged: TensorFlow already uses its devices"} and tensorflow.growth == [False]
    assert tfmemprof.TFMemoryProfiler(set_memory_growth=False).memory_growth == {}


def test_asking_for_figures_makes_no_device(tensorflow):
    profiler = tfmemprof.TFMemoryProfiler()
    profiler.get_results(), profiler.capture_snapshot(), tfmemprof.get_gpu_info()
    with profiler.profile_context("nothing"):
        pass
    tfmemprof.MemoryTracker(device="/GPU:0").get_current_memory()
    assert not tensorflow.context._context._initialized


def test_a_call_that_is_the_highest_so_far_has_an_exact_peak_and_a_lower_one_a_bound(tensorflow):
    tensorflow.initialize()
    profiler = tfmemprof.TFMemoryProfiler("/GPU:0")
    kept = []

    @profiler.profile_function
    def step(mib):
        Tensor(tensorflow, 0, mib * MIB)  # gone at once
        kept.append(Tensor(tensorflow, 0, MIB))

    step(64)
    step(16)
    high, low = profiler.results
    assert (high.basis, high.peak_is_exact, high.memory_peak.allocated_memory) == ("framework", True, 64 * MIB)
    assert (high.memory_diff(), high.tensors_created) == (MIB, None)
    # The second was at 17 MiB, which TensorFlow does not tell: what was there after it is known.
    assert (low.peak_is_exact, low.memory_peak.allocated_memory) == (False, 2 * MIB)
    assert "its peak did not rise" in low.basis_reason
    assert profiler.get_results().peak_memory_mb == 64


def test_a_reset_by_the_program_is_noticed_and_none_is_made_by_us(tensorflow):
    tensorflow.initialize()
    held = Tensor(tensorflow, 0, 64 * MIB)
    profiler = tfmemprof.TFMemoryProfiler()
    with profiler.profile_context("resets"):
        tensorflow.peaks[0] = 32 * MIB
    assert "reset TensorFlow's peak" in profiler.results[-1].basis_reason
    assert not profiler.results[-1].peak_is_exact and tensorflow.peaks == [32 * MIB]
    del held


def test_what_begins_before_the_devices_are_made_is_measured_to_its_end(tensorflow):
    profiler = tfmemprof.TFMemoryProfiler()
    with profiler.profile_context("model creation"):
        tensorflow.initialize()
        model = Tensor(tensorflow, 0, 10 * MIB)
    result = profiler.results[-1]
    assert (result.memory_diff(), result.peak_is_exact, result.basis) == (10 * MIB, True, "framework")
    assert model and profiler.get_results().peak_memory_mb == 10


def test_device_names_mean_the_gpu_that_they_name(monkeypatch):
    install(monkeypatch, gpus=2)
    full = "/job:localhost/replica:0/task:0/device:GPU:1"
    names = [None, "/GPU:0", "GPU:1", "/device:GPU:1", full, 1, "cpu", "/CPU:0"]
    assert [str(resolve_device(name)) for name in names] == ["/GPU:0", "/GPU:0"] + ["/GPU:1"] * 4 + ["/CPU:0"] * 2
    assert [resolve_device(name).index for name in ("GPU:1", "CPU:0")] == [1, -1]


def test_totals_that_tensorflow_does_not_tell_are_none_with_the_reason(tensorflow):
    info = tfmemprof.get_gpu_info()
    (gpu,) = info["devices"]
    assert (info["count"], info["total_memory"], gpu["total_memory_mb"], gpu["device_name"]) == (1, None, None, "Fake")
    assert gpu["current_memory_mb"] is None and set(gpu["unknown"]) == {
        "total_memory_mb", "current_memory_mb", "peak_memory_mb",
    }  # fmt: skip
    tensorflow.initialize()
    held = Tensor(tensorflow, 0, 3 * MIB)
    assert tfmemprof.get_gpu_info()["devices"][0]["current_memory_mb"] == 3
    sample = tfmemprof.MemoryTracker(device="/GPU:0").collector.sample_with_diagnostics()
    assert sample.sample.allocated_bytes == 3 * MIB and sample.sample.total_bytes is None and held
    assert "does not report a device's total" in sample.errors["total_bytes"]


def test_an_idle_gpu_beside_a_full_one_is_advised_with_its_bytes_and_eager_functions_too(monkeypatch):
    fake = install(monkeypatch, gpus=2)
    fake.initialize()
    call = Call("step", 1.0, 2.0, 1.0, before_bytes=10 * MIB, after_bytes=10 * MIB, peak_bytes=50 * MIB, basis="exact")
    measured = Measured(calls=(call,), device="GPU 0", basis="exact")
    fake.peaks = [50 * MIB, 0]
    advice = {each["kind"]: each["bytes"] for each in tfmemprof.MemoryAnalyzer().advise(measured)}
    assert advice["tensorflow_distribution"] == 50 * MIB and "tensorflow_tf_function" not in advice
    fake.eager_functions, fake.peaks = True, [50 * MIB, 50 * MIB]
    advice = {each["kind"]: each["bytes"] for each in tfmemprof.MemoryAnalyzer().advise(measured)}
    assert advice["tensorflow_tf_function"] == 40 * MIB and "tensorflow_distribution" not in advice


def test_without_evidence_there_is_no_recommendation_and_the_reason_is_told(tensorflow):
    report = tfmemprof.MemoryAnalyzer().generate_optimization_report()
    assert report["recommendations"] == [] and report["optimization_score"] is None
    assert tfmemprof.MemoryAnalyzer().advise().unknown
    assert tfmemprof.MemoryAnalyzer().analyze_fragmentation()["fragmentation_ratio"] is None
