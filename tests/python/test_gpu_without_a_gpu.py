"""What is asked of CUDA, and when: nothing that brings it up, and no reset of the program's that goes unseen."""

import sys
import threading

import pytest
from fake_cuda import FakeCuda, torch_of

from gpumemprof._counting import probe_counters
from gpumemprof._counting.exact_source import ExactSource
from gpumemprof._counting.framework_source import FrameworkSource
from gpumemprof.counters import Watch
from gpumemprof.device_collectors import CudaDeviceCollector
from gpumemprof.devices import Device, resolve_device
from gpumemprof.tracker import MemoryTracker


def use(monkeypatch, cuda, **options):
    monkeypatch.setitem(sys.modules, "torch", torch_of(cuda, **options))
    return cuda


@pytest.mark.parametrize("named", [None, "cuda", "gpu"])
def test_without_an_index_the_device_is_the_one_that_the_program_uses_first(monkeypatch, named):
    cuda = use(monkeypatch, FakeCuda(4, initialized=False))
    device = resolve_device(named)
    source = FrameworkSource(device, "no probe")
    assert (device.index, str(device), source.read().allocated_bytes) == (-1, "cuda", 0)
    span = source.begin()
    cuda.initialized, cuda.current = True, 3
    cuda.change(3, 700)
    figures = source.figures(span.end())
    assert (figures.allocated_bytes, figures.peak_bytes, figures.after.allocated_bytes) == (700, 700, 700)
    cuda.current = 1  # later changes are not followed: figures of two devices have no difference
    assert device == Device("cuda", 3) and hash(device) == hash(Device("cuda", 3)) and str(device) == "cuda:3"
    assert resolve_device("cuda") == Device("cuda", 1)


def test_a_thread_of_ours_takes_the_device_that_the_program_holds_memory_on(monkeypatch):
    cuda = use(monkeypatch, FakeCuda(4, initialized=False))
    device, seen = resolve_device(None), []
    cuda.initialized = True  # the thread's own current device is 0, the program's is 2
    for size_bytes in (0, 500):
        cuda.change(2, size_bytes)
        thread = threading.Thread(target=lambda: seen.append(device.index))
        thread.start()
        thread.join()
    assert seen == [-1, 2]


def test_a_tracker_begun_before_cuda_is_up_tracks_the_ranks_own_device(monkeypatch):
    cuda = use(monkeypatch, FakeCuda(4, initialized=False))
    tracker = MemoryTracker(sampling_interval=3600)
    tracker.start_tracking()
    assert (tracker.device, tracker.get_events("sample")[0].memory_allocated) == ("cuda", 0)
    cuda.initialized, cuda.current = True, 3
    cuda.change(3, 900)
    cuda.change(3, -500)
    tracker._tick()
    statistics = tracker.stop_tracking()
    assert (tracker.device, tracker.get_events("sample")[-1].device_id) == ("cuda:3", 3)
    assert (statistics["peak_memory"], statistics["last_memory_check"]) == (900, 400)
    assert statistics["peak_basis"] == "high-water mark"


@pytest.mark.parametrize("asks", [True, False])
def test_no_context_is_made_on_a_device_that_the_program_has_not_used(monkeypatch, asks):
    cuda = use(monkeypatch, FakeCuda(2, current=1, contexts=[1]), asks_for_contexts=asks)
    result = CudaDeviceCollector("cuda:0").sample_with_diagnostics()
    assert cuda.contexts == {1} and result.sample.total_bytes is None
    assert "would create a context" in result.errors["total_bytes"]
    assert CudaDeviceCollector("cuda:1").sample().total_bytes == 1000
    cuda.change(0, 10)
    assert CudaDeviceCollector("cuda:0").sample().used_bytes == 400


def figures_after(monkeypatch, work, held=100, mark=500):
    cuda = use(monkeypatch, FakeCuda())
    cuda.change(0, mark)
    cuda.change(0, held - mark)
    source = FrameworkSource(Device("cuda", 0), "no probe")
    span = source.begin()
    work(cuda)
    return source.figures(span.end())


def test_a_mark_that_rose_is_the_peak_and_the_reason_says_under_which_condition(monkeypatch):
    figures = figures_after(monkeypatch, lambda cuda: (cuda.change(0, 600), cuda.change(0, -600)))
    assert (figures.peak_bytes, figures.peak_is_exact) == (700, True)
    assert "exact unless the program reset the allocator's peaks" in figures.basis_reason


def test_a_reset_inside_is_seen_by_any_mark_that_fell_though_the_peak_rose(monkeypatch):
    cuda = use(monkeypatch, FakeCuda())
    cuda.change(0, 100)
    cuda.devices[0]["active_bytes"]["peak"] = 5000  # blocks that another stream still used
    source = FrameworkSource(Device("cuda", 0), "no probe")
    span = source.begin()
    cuda.change(0, 900)
    cuda.change(0, -900)
    cuda.reset_peaks(0)
    cuda.change(0, 600)
    figures = source.figures(span.end())
    assert (figures.peak_bytes, figures.peak_is_exact) == (700, False)  # the true one was 1000
    assert "reset the allocator's counters" in figures.basis_reason


def test_a_reset_of_the_sums_is_seen_by_the_balance_though_they_have_grown_beyond(monkeypatch):
    def work(cuda):
        cuda.reset_sums(0)
        for _ in range(20):
            cuda.change(0, 600)
            cuda.change(0, -600)

    figures = figures_after(monkeypatch, work)
    assert not figures.peak_is_exact and "lower bounds" in figures.basis_reason


def test_a_bound_seen_once_stays_a_bound(monkeypatch):
    cuda = use(monkeypatch, FakeCuda())
    cuda.change(0, 500)
    cuda.change(0, -400)
    watch = Watch(FrameworkSource(Device("cuda", 0), "no probe"))
    assert watch.look() == (100, False)
    cuda.change(0, 900)
    assert watch.look() == (1000, False)


class Probe:
    """Counters of a device that change at every look for as long as `restless`."""

    def __init__(self, restless=0):
        self.live, self.events, self.restless, self.older = 0, 0, restless, 0
        self.scopes = {}

    def counters(self, kind, index):
        self.restless -= self.restless > 0
        self.events += self.restless > 0
        return (self.live, self.events, 0, self.events, 0, self.older, 0)

    def scope_begin(self, kind, index, in_context):
        self.scopes[len(self.scopes) + 1] = [self.live, self.live]
        return len(self.scopes)

    def scope_end(self, scope):
        start, peak = self.scopes[scope]
        return (start, self.live, max(peak, self.live), 0, 0, 0, 0, 0, 0, 1)

    def burst(self, size_bytes):
        for scope in self.scopes.values():
            scope[1] = max(scope[1], self.live + size_bytes)


def exact_source(monkeypatch, probe):
    monkeypatch.setattr("gpumemprof._counting.exact_source.native", lambda: probe)
    monkeypatch.setattr("gpumemprof._counting.probe_counters.native", lambda: probe)
    return ExactSource(Device("cuda", 0))


def test_what_changes_without_an_allocation_is_read_again(monkeypatch):
    cuda = use(monkeypatch, FakeCuda())
    cuda.change(0, 100)
    source = exact_source(monkeypatch, Probe())
    span = source.begin()
    cuda.devices[0]["reserved_bytes"]["current"] = 40  # as empty_cache() does: no event
    figures = source.figures(span.end())
    assert (figures.before.reserved_bytes, figures.after.reserved_bytes) == (100, 40)
    assert figures.peak_is_exact and "blocks allocated since counting began" in figures.basis_reason


def test_counters_that_do_not_settle_are_said_and_those_that_do_are_exact(monkeypatch):
    cuda = use(monkeypatch, FakeCuda())
    cuda.change(0, 100)
    for restless, exact in ((5, True), (1000, False)):
        probe = Probe(restless)
        source = exact_source(monkeypatch, probe)
        span = source.begin()
        probe.burst(70)
        figures = source.figures(span.end())
        assert (figures.peak_bytes, figures.peak_is_exact) == (170, exact)
        assert (probe_counters.UNSETTLED in figures.basis_reason) is not exact


def test_a_watch_gives_a_peak_only_of_one_moments_counters(monkeypatch):
    cuda = use(monkeypatch, FakeCuda())
    cuda.change(0, 100)
    probe = Probe()
    exact_source(monkeypatch, probe)
    watch = probe_counters.PeakWatch(1, lambda: 0, CudaDeviceCollector("cuda:0").allocated_now)
    probe.burst(70)
    assert watch.take() == (170, None)
    probe.older = 1
    assert watch.take()[1].startswith("1 older blocks were freed")
    probe.restless = 1000
    assert watch.take() == (100, None)  # it was opened while all was calm
    assert watch.take() == (None, probe_counters.UNSETTLED)
