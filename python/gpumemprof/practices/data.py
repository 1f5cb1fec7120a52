"""Data that is read when it is needed, with as little prefetching as keeps the model busy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("loading data")


class OptimizedDataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """The samples of a folder, each read when it is requested; only file names are kept in memory.

    Files are mapped if possible, and never execute code (`weights_only`).
    """

    def __init__(self, data_path: str | os.PathLike[str], pattern: str = "*.pt") -> None:
        self.data_path = Path(data_path)
        self.index = sorted((path.name for path in self.data_path.glob(pattern)), key=_by_number)
        if not self.index:
            raise FileNotFoundError(f"no file {pattern} in {self.data_path}")

    def __getitem__(self, idx: int) -> Any:
        return torch.load(self.data_path / self.index[idx], map_location="cpu", weights_only=True)

    def __len__(self) -> int:
        return len(self.index)


def create_optimized_dataloader(dataset: Any, batch_size: int = 32, **options: Any) -> Any:
    """A DataLoader that prefetches `workers · prefetch_factor` batches and no more.

    The defaults fit the machine: as many workers as there are spare processors, at most four; pinned memory only with a
    GPU; an incomplete batch is dropped only if there is a complete one. `options` are DataLoader's own and take
    precedence.
    """
    workers = options.pop("num_workers", min(4, max(_processors() - 1, 0)))
    chosen: dict[str, Any] = {"num_workers": workers, "pin_memory": torch.cuda.is_available()}
    if workers:
        chosen |= {"persistent_workers": True, "prefetch_factor": 2}
    if hasattr(dataset, "__len__"):
        chosen["drop_last"] = len(dataset) >= batch_size
    return torch.utils.data.DataLoader(dataset, batch_size=batch_size, **(chosen | options))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _by_number(name: str) -> tuple[int, str]:
    """sample_2 before sample_10."""
    digits = "".join(filter(str.isdigit, name))
    return int(digits[:18]) if digits else 0, name
