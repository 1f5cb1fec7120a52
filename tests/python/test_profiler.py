"""GPUMemoryProfiler as documented, on the CPU and without a probe: names, shapes, errors, limits."""

import asyncio
import threading

import harness
import pytest
import torch

import gpumemprof
from gpumemprof import GPUMemoryProfiler, MemorySnapshot, ProfileResult

MIB = 2**20
SUMMARY_KEYS = {
    "device", "total_functions_profiled", "total_function_calls", "total_execution_time", "total_memory_allocated",
    "total_memory_freed", "net_memory_change", "peak_memory_usage", "current_memory_usage", "baseline_memory_usage",
    "memory_change_from_baseline", "function_summaries", "monitoring_active", "snapshots_collected",
}  # fmt: skip


@pytest.fixture
def profiler():
    return GPUMemoryProfiler(device="cpu")


def touched(size_bytes):
    return torch.ones(size_bytes, dtype=torch.uint8)


def test_a_call_gives_its_result_with_every_documented_field(profiler):
    result = profiler.profile_function(touched, MIB)
    assert isinstance(result, ProfileResult) and result.function_name == "touched" and result.call_count == 1
    for snapshot in (result.memory_before, result.memory_after, result.memory_peak):
        assert isinstance(snapshot, MemorySnapshot) and snapshot.allocated_memory > 0 and snapshot.cpu_memory > 0
        assert snapshot.operation == "touched" and snapshot.device_id == -1
    assert result.peak_memory_usage() == result.memory_peak.allocated_memory
    assert result.memory_diff() == result.memory_after.allocated_memory - result.memory_before.allocated_memory
    assert profiler.results == [result]


def test_without_a_probe_the_result_says_that_it_is_resident_memory(profiler):
    result = profiler.profile_function(touched, 64 * MIB)
    assert result.basis == "host" and "resident memory of the whole process" in result.basis_reason
    assert result.tensors_created is None and result.tensors_deleted is None and result.own_peak_bytes is None


def test_resident_memory_shows_what_a_call_kept(profiler):
    kept = []
    result = profiler.profile_function(lambda: kept.append(harness.fresh_pages(256 * MIB)))
    # The kernel counts resident pages in batches of a thread; that is far below a sixteenth of this.
    assert abs(result.memory_diff() - 256 * MIB) < 16 * MIB
    assert result.memory_allocated == result.memory_diff() and result.memory_freed == 0


def test_a_peak_below_an_earlier_one_is_called_a_lower_bound(profiler):
    profiler.profile_function(touched, 512 * MIB)
    result = profiler.profile_function(touched, MIB)
    assert not result.peak_is_exact and "the peak is the higher of before and after" in result.basis_reason


def test_users_own_peak_of_torch_is_left_alone(profiler, monkeypatch):
    called = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda *a: called.append(a))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *a: called.append(a))
    profiler.profile_function(touched, MIB)
    profiler.clear_results()
    assert called == []


def test_the_summary_has_all_keys_before_anything_was_profiled(profiler):
    summary = profiler.get_summary()
    assert summary.keys() >= SUMMARY_KEYS
    assert summary["total_function_calls"] == 0 and summary["function_summaries"] == {}
    assert summary["peak_memory_usage"] > 0


def test_the_summary_adds_up(profiler):
    for _ in range(3):
        profiler.profile_function(touched, MIB)
    with profiler.profile_context("block"):
        touched(MIB)
    summary = profiler.get_summary()
    assert summary["total_functions_profiled"] == 2 and summary["total_function_calls"] == 4
    touched_stats = summary["function_summaries"]["touched"]
    assert touched_stats["call_count"] == 3
    calls = [r for r in profiler.results if r.function_name == "touched"]
    assert touched_stats["peak_over_start"] == max(r.peak_over_start() for r in calls)
    assert touched_stats["avg_time"] == touched_stats["total_time"] / 3
    assert summary["net_memory_change"] == summary["total_memory_allocated"] - summary["total_memory_freed"]
    assert summary["peak_memory_usage"] >= max(r.peak_memory_usage() for r in profiler.results)


def test_clearing_forgets_everything(profiler):
    profiler.profile_function(touched, MIB)
    profiler.capture_snapshot("one")
    profiler.clear_results()
    assert profiler.results == [] and profiler.snapshots == [] and profiler.function_stats == {}
    assert profiler.get_summary()["total_function_calls"] == 0


def test_a_snapshot_is_named_and_in_mib(profiler):
    snapshot = profiler.capture_snapshot("before_optimization")
    assert snapshot.operation == "before_optimization"
    assert snapshot.gpu_memory_mb == snapshot.allocated_memory / MIB
    assert profiler.snapshots == [snapshot]
    assert snapshot.to_dict()["allocated_memory"] == snapshot.allocated_memory


def test_one_switch_with_two_names():
    assert GPUMemoryProfiler("cpu", enable_tensor_tracking=False).track_tensors is False
    assert GPUMemoryProfiler("cpu", track_tensors=False).enable_tensor_tracking is False
    assert GPUMemoryProfiler("cpu").track_tensors is True


@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu"), None])
def test_spellings_of_the_cpu(device):
    if device is None and torch.cuda.is_available():
        pytest.skip("here None is a GPU")
    assert GPUMemoryProfiler(device=device).device == torch.device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda:0", "cuda", 0, torch.device("cuda:0")])
def test_a_gpu_that_is_not_there_is_a_clear_error(device):
    with pytest.raises(RuntimeError, match='CUDA is not available.*device="cpu"'):
        GPUMemoryProfiler(device=device)


@pytest.mark.parametrize(("device", "error"), [("mps", ValueError), ("cuda:x", ValueError), (1.5, TypeError)])
def test_what_is_no_device_is_an_error(device, error):
    with pytest.raises(error):
        GPUMemoryProfiler(device=device)


def test_the_method_decorates_a_function_with_parameters(profiler):
    @profiler.profile_function
    def add(a, b=1):
        "Adds."
        return a + b

    assert profiler.results == [] and add(2) == 3 and add(2, b=5) == 7
    assert [r.function_name for r in profiler.results] == ["add", "add"]
    assert add.__name__ == "add" and add.__doc__ == "Adds."


def test_a_function_without_parameters_is_called_once_and_can_be_called_again(profiler):
    calls = []

    @profiler.profile_function
    def step():
        calls.append(1)
        return "value"

    assert isinstance(step, ProfileResult) and calls == [1]
    assert step() == "value" and calls == [1, 1] and len(profiler.results) == 2


def test_module_level_decorators_keep_the_function_as_it_was(profiler):
    @gpumemprof.profile_function(name="named", profiler=profiler)
    def double(x):
        return 2 * x

    @gpumemprof.profile_function
    def shared(x):
        return x

    assert double(4) == 8 and shared(1) == 1
    assert double._is_profiled and double._profile_name == "named"
    assert profiler.results[0].function_name == "named"
    assert gpumemprof.get_profile_results(limit=1)[0].function_name == "shared"
    gpumemprof.set_global_profiler(None)
    assert gpumemprof.get_summary() == {"message": "No global profiler instance"}


def test_a_block_that_raises_is_recorded_and_raises(profiler):
    with pytest.raises(ZeroDivisionError), profiler.profile_context("bad"):
        1 / 0  # noqa: B018
    assert profiler.results[-1].error == "ZeroDivisionError"


def test_generators_pass_values_exceptions_and_results_through(profiler):
    log = []

    @gpumemprof.profile_function(profiler=profiler)
    def talk():
        try:
            got = yield 1
            log.append(got)
            try:
                yield 2
            except KeyError:
                log.append("thrown")
            yield 3
            return "end"
        finally:
            log.append("closed")

    generator = talk()
    assert next(generator) == 1 and generator.send("hello") == 2 and generator.throw(KeyError()) == 3
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end" and log == ["hello", "thrown", "closed"]

    log.clear()
    early = talk()
    next(early)
    early.close()
    assert log == ["closed"] and [r.error for r in profiler.results] == [None, None]


def test_asynchronous_generators_pass_values_and_exceptions_through(profiler):
    log = []

    @gpumemprof.profile_function(profiler=profiler)
    async def talk():
        try:
            log.append((yield 1))
            try:
                yield 2
            except KeyError:
                yield 3
        finally:
            log.append("closed")

    async def main():
        generator = talk()
        got = [await generator.__anext__(), await generator.asend("hello"), await generator.athrow(KeyError())]
        await generator.aclose()
        return got

    assert asyncio.run(main()) == [1, 2, 3] and log == ["hello", "closed"]


def test_a_cancelled_coroutine_is_recorded_and_stays_cancelled(profiler):
    @gpumemprof.profile_function(profiler=profiler)
    async def wait():
        await asyncio.sleep(60)

    async def main():
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert profiler.results[0].error == "CancelledError"


def test_threads_lose_no_call(profiler):
    call = profiler.wrap(lambda: None, "call")

    def work():
        for _ in range(500):
            call()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert profiler.get_summary()["function_summaries"]["call"]["call_count"] == 4000


def test_results_are_bounded_and_say_how_many_were_dropped():
    profiler = GPUMemoryProfiler("cpu", max_results=50)
    for _ in range(175):
        profiler.profile_function(int)
    assert len(profiler.results) <= 50
    assert profiler.results_dropped + len(profiler.results) == 175
    assert profiler.get_summary()["total_function_calls"] == 175


def test_results_behave_as_a_list(profiler):
    for name in ("a", "b", "c"):
        with profiler.profile_context(name):
            pass
    results = profiler.results
    assert isinstance(results, list) and results[-1] is results[2] and len(results[1:]) == 2
    assert [r.function_name for r in reversed(results)] == ["c", "b", "a"]
    assert [r.function_name for r in list(results) + results[:1]] == ["a", "b", "c", "a"]
    assert results[0] in results and results.index(results[1]) == 1
    assert all(isinstance(r, ProfileResult) for r in results)
    with pytest.raises(IndexError):
        results[3]


def test_stacks_name_the_users_lines_only():
    profiler = GPUMemoryProfiler("cpu", collect_stack_traces=True)
    result = profiler.profile_function(int)
    first = result.memory_after.stack_trace.splitlines()[0]
    assert first.startswith(__file__) and first.endswith("test_stacks_name_the_users_lines_only")
    assert "gpumemprof/profiler.py" not in result.memory_after.stack_trace


def test_monitoring_takes_snapshots_until_it_is_stopped(profiler):
    enough = threading.Event()
    profiler.start_monitoring(interval=0.001)
    profiler.start_monitoring(interval=0.001)  # a second one changes nothing
    while len(profiler.snapshots) < 3:
        assert profiler.get_summary()["monitoring_active"]
        enough.wait(0.001)
    profiler.stop_monitoring()
    count = profiler.get_summary()["snapshots_collected"]
    enough.wait(0.02)
    assert profiler.get_summary()["snapshots_collected"] == count and not profiler.is_monitoring


@pytest.mark.parametrize("interval", [0, -1, float("nan")])
def test_an_interval_that_is_none_is_refused(profiler, interval):
    with pytest.raises(ValueError, match="interval"):
        profiler.start_monitoring(interval)


def test_saved_results_load_again(tmp_path):
    memory = gpumemprof.MemoryProfiler("cpu")
    memory.profile(touched, MIB)
    memory.save_results(tmp_path / "results.json")
    content = memory.load_results(tmp_path / "results.json")
    assert content["results"][0]["function_name"] == "touched"
    assert content["summary"]["total_function_calls"] == 1
    (tmp_path / "bad.json").write_text('{"summary": ')
    with pytest.raises(ValueError, match=r"bad.json: not JSON \(at byte 12\)"):
        memory.load_results(tmp_path / "bad.json")
