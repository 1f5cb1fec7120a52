"""What the fragments of the documents take for granted: their undefined names, as small real things.

Each function below makes one; `namespace` makes those that a block needs, in the order in which it names them. Where
there is no GPU, `use_the_cpu` maps `.cuda()` and CUDA devices to the CPU. Nothing else of a block is changed.
"""

import gc
import logging
import os
import re
import time
import types
from pathlib import Path

import torch

import gpumemprof
from gpumemprof import GPUMemoryProfiler, MemoryAnalyzer, MemoryTracker, MemoryVisualizer

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
MIB = 1 << 20
HELD_BYTES = 64 * MIB  # what train_model holds for a moment: far above everything else
LEAK_BYTES, LEAK_STEPS = 2 * MIB, 60
DATASET_BYTES = 4 * 10_007  # what load_large_dataset makes: a size that nothing else has
CLASSES, FEATURES, BATCH = 10, 100, 32


def use_the_cpu(gpus=1):
    """The documents' `.cuda()` and CUDA devices, on a machine that has none. For the block's process only."""
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self
    torch.cuda.device_count = lambda: gpus
    made = GPUMemoryProfiler.__init__

    def on_the_cpu(self, device=None, *args, **kwargs):
        named = isinstance(device, int) or str(device).startswith("cuda")
        made(self, "cpu" if named else device, *args, **kwargs)

    GPUMemoryProfiler.__init__ = on_the_cpu


def namespace(given):
    """The globals of a block. `given`: "model leaking as tracking_results" makes `model`, and what `leaking` makes
    under the other name; a name that no function here makes is one of the package's own.
    """
    ns = {"__name__": "__main__"}
    for maker, name in re.findall(r"(\w+)(?: as (\w+))?", given):
        ns[name or maker] = _MAKERS[maker](ns) if maker in _MAKERS else getattr(gpumemprof, maker)
    return ns


def touched(size_bytes):
    """A tensor whose memory is written, so that resident memory has it too."""
    return torch.ones(size_bytes // 4, device=DEVICE)


def classifier(ns):
    return torch.nn.Linear(FEATURES, CLASSES, device=DEVICE)


def profiler_with_calls(ns):
    """A profiler that has seen twelve calls of two functions, which keep nothing."""
    profiler = GPUMemoryProfiler()

    def small():
        touched(MIB)
        time.sleep(0.002)

    def large():
        touched(4 * MIB)
        time.sleep(0.008)

    for _ in range(12):
        profiler.profile_function(small)
        profiler.profile_function(large)
    return profiler


def leaking(ns):
    """What stop_tracking() gives of a program that keeps a piece at each of its steps."""
    tracker = MemoryTracker(sampling_interval=0.01, enable_alerts=False)
    kept = []
    tracker.start_tracking()
    for _ in range(LEAK_STEPS):
        kept.append(touched(LEAK_BYTES))
        time.sleep(0.02)
    ns["_kept"] = kept
    tracker.stop_tracking()
    return tracker.get_events()


def train_model(ns):
    def train_model(*_):
        held = touched(HELD_BYTES)
        time.sleep(0.4)
        del held

    return train_model


def out_of_memory_training(ns):
    def train_model():
        held = touched(HELD_BYTES)
        time.sleep(0.4)
        try:
            torch.empty(2**52, dtype=torch.uint8, device=DEVICE)  # more bytes than any machine has
        except RuntimeError as error:
            # The CPU's allocator words it otherwise than a GPU's, whose words the example looks for.
            raise torch.OutOfMemoryError(f"CUDA out of memory: {held.nbytes} bytes were held. {error}") from error

    return train_model


def optimize_model(ns):
    def optimize_model():
        ns["my_tensor"] = None

    return optimize_model


def create_tensors(ns):
    def create_tensors():
        for _ in range(10):
            torch.ones(1000, device=DEVICE)

    return create_tensors


def buggy_function(ns):
    def buggy_function():
        held = touched(HELD_BYTES)
        raise ValueError(f"gone wrong with {held.numel()} numbers")

    return buggy_function


def my_function(ns):
    def my_function():
        touched(HELD_BYTES)  # dropped at once
        return touched(MIB)

    return my_function


def talking_profiler(ns):
    """One that says when tensors come and go, on the standard output: its messages are log records."""

    class Printing(logging.Handler):
        def emit(self, record):
            print(record.getMessage())

    logging.basicConfig(level=logging.INFO, handlers=[Printing()])
    return GPUMemoryProfiler(enable_tensor_tracking=True)


def result_of_my_function(ns):
    ns["profiler"] = GPUMemoryProfiler()
    return ns["profiler"].profile_function(my_function(ns))


def results_by_function(ns):
    """Results with `function_profiles`, the shape that the TensorFlow half gives."""
    return types.SimpleNamespace(function_profiles=ns["profiler"].function_stats)


def tracking_server(ns):
    """The real MLflow, with its files in the working directory, which it wants to be asked for."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    mlflow.set_tracking_uri(Path("mlruns").absolute().as_uri())
    return mlflow


def batches(ns):
    return [(torch.randn(BATCH, FEATURES), torch.randint(CLASSES, (BATCH,))) for _ in range(5)]


def train_epoch(ns):
    def train_epoch(model, loader):
        for data, target in loader:
            torch.nn.functional.cross_entropy(model(data.to(DEVICE)), target.to(DEVICE)).backward()
        time.sleep(0.05)

    return train_epoch


def train_step(ns):
    model = classifier(ns)

    def train_step(batch):
        data, target = batch
        return torch.nn.functional.cross_entropy(model(data.to(DEVICE)), target.to(DEVICE))

    return train_step


def wide_batches(ns):
    """For the practices' layers of 1000 × 1000."""
    return [(torch.randn(4, 1000, device=DEVICE), torch.randn(4, 1000, device=DEVICE)) for _ in range(8)]


_MAKERS = {
    "wide_batches": wide_batches,
    "mean_square": lambda ns: torch.nn.functional.mse_loss,
    "optimizer": lambda ns: torch.optim.Adam(ns["model"].parameters()),
    "torch": lambda ns: torch,
    "gc": lambda ns: gc,
    "mlflow": tracking_server,
    "profiler": lambda ns: GPUMemoryProfiler(),
    "profiler_with_calls": profiler_with_calls,
    "talking_profiler": talking_profiler,
    "result_of_my_function": result_of_my_function,
    "results": lambda ns: ns["profiler"].get_summary(),
    "results_of_calls": lambda ns: ns["profiler"].results,
    "results_by_function": results_by_function,
    "visualizer": lambda ns: MemoryVisualizer(ns["profiler"]),
    "analyzer": lambda ns: MemoryAnalyzer(),
    "tracking_results": leaking,
    "model": classifier,
    "data": lambda ns: torch.randn(BATCH, FEATURES, device=DEVICE),
    "target": lambda ns: torch.randint(CLASSES, (BATCH,), device=DEVICE),
    "input_tensor": lambda ns: torch.randn(BATCH // 2, FEATURES, device=DEVICE),
    "dataset": batches,
    "dataloader": batches,
    "train_step": train_step,
    "train_epoch": train_epoch,
    "train_model": train_model,
    "train_model_on": lambda ns: lambda data: float(data.sum()),
    "out_of_memory_training": out_of_memory_training,
    "load_large_dataset": lambda ns: lambda: touched(DATASET_BYTES),
    "LargeVisionModel": lambda ns: lambda: torch.nn.Linear(2048, 512),
    "OptimizedVisionModel": lambda ns: lambda: torch.nn.Linear(512, 512),
    "my_tensor": lambda ns: touched(HELD_BYTES),
    "optimize_model": optimize_model,
    "my_function": my_function,
    "buggy_function": buggy_function,
    "create_tensors": create_tensors,
}
