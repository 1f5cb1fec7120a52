"""Helpers that save memory, each with a test of its saving.

Every name is in the table below; its module, and PyTorch, are imported at the first use of the name.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from typing import Any

_HOMES: dict[str, tuple[str, ...]] = {
    "accumulation": ("GradientAccumulator",),
    "batch_size": ("DynamicBatchSizer", "train_with_dynamic_batching"),
    "checkpointing": ("CheckpointedModel", "checkpoint_modules"),
    "data": ("OptimizedDataset", "create_optimized_dataloader"),
    "distillation": ("KnowledgeDistillation",),
    "distributed": ("cleanup_distributed", "setup_distributed", "train_distributed"),
    "gradients": ("efficient_training_loop", "freeze_layers", "inference_mode", "selective_gradients"),
    "monitor": ("MemoryMonitor", "auto_cleanup"),
    "offloading": ("LayerOffloader", "memory_efficient_forward"),
    "precision": ("mixed_precision_training_example",),
    "profiling": (
        "analyze_profiling_results", "optimize_based_on_profiling", "profile_first_approach", "profile_memory_usage",
        "profile_model",
    ),
    "pruning": ("fine_grained_pruning", "prune_model"),
    "quantization": ("dynamic_quantization", "quantize_model"),
    "sparse": ("SparseEmbedding", "sparse_matrix_operations"),
    "variables": ("memory_efficient_processing",),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value: Any = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    elif name in _HOMES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})


if TYPE_CHECKING:
    from .accumulation import GradientAccumulator as GradientAccumulator
    from .batch_size import DynamicBatchSizer as DynamicBatchSizer
    from .batch_size import train_with_dynamic_batching as train_with_dynamic_batching
    from .checkpointing import CheckpointedModel as CheckpointedModel
    from .checkpointing import checkpoint_modules as checkpoint_modules
    from .data import OptimizedDataset as OptimizedDataset
    from .data import create_optimized_dataloader as create_optimized_dataloader
    from .distillation import KnowledgeDistillation as KnowledgeDistillation
    from .distributed import cleanup_distributed as cleanup_distributed
    from .distributed import setup_distributed as setup_distributed
    from .distributed import train_distributed as train_distributed
    from .gradients import efficient_training_loop as efficient_training_loop
    from .gradients import freeze_layers as freeze_layers
    from .gradients import inference_mode as inference_mode
    from .gradients import selective_gradients as selective_gradients
    from .monitor import *
    from .offloading import LayerOffloader as LayerOffloader
    from .offloading import memory_efficient_forward as memory_efficient_forward
    from .precision import mixed_precision_training_example as mixed_precision_training_example
    from .profiling import analyze_profiling_results as analyze_profiling_results
    from .profiling import optimize_based_on_profiling as optimize_based_on_profiling
    from .profiling import profile_first_approach as profile_first_approach
    from .profiling import profile_memory_usage as profile_memory_usage
    from .profiling import profile_model as profile_model
    from .pruning import fine_grained_pruning as fine_grained_pruning
    from .pruning import prune_model as prune_model
    from .quantization import dynamic_quantization as dynamic_quantization
    from .quantization import quantize_model as quantize_model
    from .sparse import SparseEmbedding as SparseEmbedding
    from .sparse import sparse_matrix_operations as sparse_matrix_operations
    from .variables import memory_efficient_processing as memory_efficient_processing
