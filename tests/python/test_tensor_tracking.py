"""Tensors followed by name, and live messages."""

import gc
import logging
import types

import numpy
import pytest
import torch

from gpumemprof import GPUMemoryProfiler
from gpumemprof._profiling import shared
from gpumemprof.devices import resolve_device
from gpumemprof.tensor_tracker import TensorTracker


@pytest.fixture
def tracker():
    tracker = TensorTracker()
    yield tracker
    tracker.stop_live()


def test_a_tensor_is_followed_until_its_memory_is_given_back(tracker, caplog):
    caplog.set_level(logging.INFO, "gpumemprof.tensors")
    tensor = torch.zeros(1000, 1000)
    entry = tracker.track_tensor(tensor, "important_data")
    assert (entry.size_bytes, entry.shape) == (4_000_000, (1000, 1000))
    assert (entry.dtype, entry.device) == ("torch.float32", "cpu")
    view = tensor[0]
    del tensor
    gc.collect()
    assert entry.is_alive and tracker.alive_bytes() == 4_000_000  # the view holds it
    del view
    assert not entry.is_alive and tracker.alive() == []
    assert [r.getMessage() for r in caplog.records] == [
        "Tensor tracked: 3.81 MiB (important_data)", "Tensor freed: 3.81 MiB (important_data)",
    ]  # fmt: skip


def test_a_tensor_that_autograd_holds_is_alive(tracker):
    weight = torch.ones(10, requires_grad=True)
    inner = weight * 2
    entry = tracker.track_tensor(inner, "inner")
    outer = inner.exp() * inner
    del inner
    assert entry.is_alive
    del outer
    assert not entry.is_alive


def test_arrays_of_numpy_are_followed_too(tracker):
    array = numpy.zeros(100)
    entry = tracker.track_tensor(array, "array")
    assert entry.size_bytes == 800 and entry.is_alive
    del array
    assert not entry.is_alive


def test_what_has_no_size_is_refused(tracker):
    with pytest.raises(TypeError, match="cannot track a int"):
        tracker.track_tensor(3)


def test_live_messages_say_what_comes_and_goes(tracker, caplog):
    caplog.set_level(logging.INFO, "gpumemprof.tensors")
    older = torch.ones(4)
    tracker.start_live()
    x = torch.zeros(1000, 1000)
    y = x.view(-1)
    older.add_(1)
    del x, y
    tracker.stop_live()
    torch.zeros(7)
    assert [r.getMessage() for r in caplog.records] == [
        "Tensor created: 3.81 MiB (float32 [1000, 1000], cpu)", "Tensor freed: 3.81 MiB (float32 [1000, 1000], cpu)",
    ]  # fmt: skip


def test_a_profiler_tells_only_where_it_was_asked_to_and_messages_are_shown(caplog):
    unseen = GPUMemoryProfiler("cpu", enable_tensor_tracking=True)
    torch.zeros(1000, 1000)
    assert caplog.records == []
    caplog.set_level(logging.INFO)
    profiler = GPUMemoryProfiler("cpu", enable_tensor_tracking=True)
    torch.zeros(1000, 1000)
    profiler.tensor_tracker.stop_live()
    assert [r.getMessage()[:24] for r in caplog.records] == ["Tensor created: 3.81 MiB", "Tensor freed: 3.81 MiB ("]
    assert unseen.tensor_tracker.tracked == []


def test_a_program_that_shows_messages_has_no_operation_slowed_down_unasked(caplog):
    caplog.set_level(logging.INFO)  # of the root logger, as basicConfig does
    modes = torch._C._len_torch_dispatch_stack()
    profilers = [GPUMemoryProfiler("cpu"), GPUMemoryProfiler("cpu", track_tensors=True)]
    torch.zeros(1000, 1000)
    assert torch._C._len_torch_dispatch_stack() == modes and caplog.records == []
    assert all(profiler.track_tensors for profiler in profilers)


def test_the_shared_profiler_of_another_device_is_made_once(monkeypatch):
    made = []

    class Counted(GPUMemoryProfiler):
        def __init__(self, *args, **kwargs):
            made.append(args)
            super().__init__(*args, **kwargs)

    profilers = shared.SharedProfilers(Counted, resolve_device)
    monkeypatch.setattr(shared, "_profilers", profilers)
    # A shared one that is of no device that is asked for below.
    profilers.set(types.SimpleNamespace(_device=None))
    first = shared.get_global_profiler("cpu")
    assert shared.get_global_profiler("cpu") is first and len(made) == 1
