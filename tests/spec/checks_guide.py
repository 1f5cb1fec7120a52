"""What the guide's blocks have to have done, in the guide's order.

Sizes by arithmetic: numbers times four bytes, as PyTorch's CPU allocator hands them out. Sums are exact where figures
are (`Ran.exactly`); from resident memory or on a GPU, which rounds, they have to be there and plausible. A check may
return facts, which the test compares with the recording of the same run.
"""

import json
import urllib.request
from pathlib import Path

import gpumemprof
import torch
from given import BATCH, CLASSES, FEATURES, GPU, HELD_BYTES, MIB

FLOAT = 4
LINEAR = (FEATURES + 1) * CLASSES * FLOAT  # the parameters of the given model, and their gradients
PNG = b"\x89PNG\r\n\x1a\n"


def nothing(ran):
    pass


def batch_size(ran, expected):
    assert ran["batch_size"] == expected


def losses(ran):
    assert len(ran["losses"]) == 5
    assert all(loss.grad_fn is not None for loss in ran["losses"])


def basic_usage(ran):
    profile, results = ran["profile"], ran["results"]
    ran.has_basis(ran["profiler"], profile)
    # Kept by the call: the gradients of all parameters and the loss.
    ran.exactly(profile.memory_diff(), LINEAR + FLOAT)
    forward = ran["profiler"].results[-1]
    assert forward.function_name == "forward_pass"
    ran.exactly(forward.memory_diff(), BATCH // 2 * CLASSES * FLOAT)
    assert "Profiled function: train_step\n" in ran.printed
    assert results["peak_memory_usage"] >= profile.peak_memory_usage() > 0
    assert ran.number("Peak memory usage:") == round(results["peak_memory_usage"] / MIB, 2)


def tensor_messages(ran):
    # 1000 * 1000 numbers of 4 bytes are 3.81 MiB.
    made, freed = ran.printed.index("Tensor created: 3.81 MiB"), ran.printed.index("Tensor freed: 3.81 MiB")
    assert made < freed


def real_example(ran):
    parameters = (1000 + 1) * 100 * FLOAT
    summary = ran["results"]
    ran.has_basis(ran["profiler"])
    calls = [r for r in ran["profiler"].results if r.function_name == "training_step"]
    epochs = [r for r in ran["profiler"].results if r.function_name.startswith("epoch_")]
    assert (len(calls), len(epochs), summary["total_function_calls"]) == (10, 10, 20)
    # The first step makes gradients, Adam's two moments and its two step counts; later ones replace gradients.
    ran.exactly(calls[0].memory_diff(), 3 * parameters + 2 * FLOAT)
    ran.exactly(sum(call.memory_diff() for call in calls[1:]), 0)
    inputs = 64 * (1000 + 100) * FLOAT
    ran.at_least(summary["peak_memory_usage"], 4 * parameters + inputs)
    assert ran.number("Peak memory usage:") == round(summary["peak_memory_usage"] / MIB, 2)
    assert ran.printed.count("Loss:") == 10
    return {"peak_bytes": summary["peak_memory_usage"]}


def tracked(ran):
    results = ran["results"]
    assert results["basis"] == ran.basis
    assert not ran["tracker"].is_tracking
    ran.at_least(results["peak_memory"], HELD_BYTES)
    ran.exactly(results["peak_memory"], HELD_BYTES)
    assert len(ran["tracker"].get_events("sample")) >= 3


def leaks(ran):
    assert ran.printed.startswith("Memory leaks detected!\n- ")
    assert "- monotonic_increase: " in ran.printed
    assert all(leak["description"] for leak in ran["leaks"])


def interactive_timeline(ran):
    parts = [part for section in ran["_"].document["sections"] for part in section["parts"]]
    lines = [line for part in parts if part["kind"] == "chart" for line in part["lines"]]
    assert any(len(line["bytes"]) > 1 for line in lines), "a timeline without points"


def function_bars(ran):
    document = json.dumps(ran["_"].document)
    assert "small" in document and "large" in document


def drawn(figure):
    """The words in a matplotlib figure."""
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in figure.findobj(Text))


def heatmap(ran):
    assert "small" in drawn(ran["_"]) and "large" in drawn(ran["_"])


def dashboard(ran):
    try:
        with urllib.request.urlopen("http://127.0.0.1:8050/", timeout=20) as page:
            assert page.status == 200 and b"gpumemprof" in page.read()
    finally:
        ran["_"].stop()


def decorator(ran):
    assert ran["my_training_function"]() is None
    (result,) = gpumemprof.get_profile_results()
    assert "my_training_function" in result.function_name
    ran.exactly(result.memory_allocated, 0)


def contexts(ran):
    assert [r.function_name for r in gpumemprof.get_profile_results()] == ["data_loading", "model_training"]


def modules(ran):
    data = torch.ones(4, FEATURES, device="cuda" if GPU else "cpu")
    assert torch.equal(ran["profiled_model"](data), ran["model"](data))
    results = gpumemprof.get_profile_results()
    assert results, "the model's forward pass was not profiled"
    ran.exactly(results[-1].memory_diff(), 4 * CLASSES * FLOAT)


def score(ran):
    value = ran["efficiency_score"]
    assert 0 <= value <= 10
    assert ran.printed == f"Memory efficiency score: {value:.1f}/10\n"


def insights(ran):
    lines = ran.printed.splitlines()
    assert lines[0] == "Top performance insights:"
    assert lines[1:], "twelve calls of two functions, one larger and slower, and no insight"


def patterns(ran):
    # Free blocks are known on CUDA alone: there is no pool on the CPU that could be fragmented.
    assert GPU or ran["fragmentation_patterns"] == []


def quick_start(ran):
    assert ran["profile"].function_name == "train_step"
    assert "Profiled function: train_step\n" in ran.printed
    ran.exactly(ran["profile"].memory_allocated, 0)
    ran.exactly(ran["results"]["peak_memory_usage"], 0)


def first_analysis(ran):
    parameters = (1000 + 1) * 100 * FLOAT
    (result,) = ran["profiler"].results
    ran.has_basis(ran["profiler"], result)
    ran.exactly(result.memory_diff(), 3 * parameters + 2 * FLOAT)
    ran.at_least(result.peak_memory_usage(), 4 * parameters)
    assert Path("my_memory_timeline.png").read_bytes().startswith(PNG)
    assert ran.printed.startswith("Optimization suggestions:\n1. ")
    return {"peak_bytes": ran["results"]["peak_memory_usage"]}


def snapshots(ran):
    before, after = ran["snapshot"], ran["snapshot_after"]
    assert (before.operation, after.operation) == ("before_optimization", "after_optimization")
    (entry,) = ran["profiler"].tensor_tracker.tracked
    assert (entry.name, entry.size_bytes, entry.is_alive) == ("important_data", HELD_BYTES, False)
    saved = before.allocated_memory - after.allocated_memory
    ran.exactly(saved, HELD_BYTES)
    ran.at_least(saved, HELD_BYTES * 0.9)
    assert ran.printed == f"Optimization saved {saved / MIB:.2f} MB\n"


def watchdog(ran):
    figures = ran["watchdog"].get_cleanup_stats()
    assert not ran["watchdog"].is_running
    # 64 MiB are far below 6,000: nothing was to be cleaned up.
    assert figures["cleanup_count"] == 0


def every_gpu(ran):
    assert ran["gpu_id"] == torch.cuda.device_count() - 1


def mlflow_metrics(ran):
    run = ran["mlflow"].active_run()
    metrics = ran["mlflow"].get_run(run.info.run_id).data.metrics
    results = ran["results"]
    assert metrics["peak_memory_mb"] == results["peak_memory_usage"] / MIB
    assert metrics["total_profiled_calls"] == 0
    ran.at_least(metrics["peak_memory_mb"], HELD_BYTES / MIB)
    ran.exactly(results["peak_memory_usage"], HELD_BYTES)


def out_of_memory(ran):
    peak = ran["stats"]["peak_memory"]
    ran.exactly(peak, HELD_BYTES)
    ran.at_least(peak, HELD_BYTES)
    assert ran.number("Peak memory before crash:") == round(peak / MIB, 1)
    assert ran.printed.count("\n- ") >= 1


def sensitive(ran):
    assert ran["analyzer"].sensitivity == 0.01
    assert ran["tracker"].sampling_interval == 0.1


def less_overhead(ran):
    assert ran["profiler"].track_tensors is False
    assert ran["tracker"].sampling_interval == 5.0
