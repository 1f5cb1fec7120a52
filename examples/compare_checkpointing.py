#!/usr/bin/env python3
"""What activation checkpointing saves: the peak of one training step without and with it, and its price in time.

    gpumemprof run -- python examples/compare_checkpointing.py
    python examples/compare_checkpointing.py --layers 12 --device cuda
"""

import argparse

import torch
from torch.utils.checkpoint import checkpoint

from gpumemprof import GPUMemoryProfiler, format_bytes


class Tower(torch.nn.Module):
    """Layers on top of each other; each keeps its activations for the backward pass, or computes them again."""

    def __init__(self, width, layers, device):
        super().__init__()
        self.checkpointed = False
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.Linear(width, 4 * width, device=device),
                torch.nn.GELU(),
                torch.nn.Linear(4 * width, width, device=device),
            )
            for _ in range(layers)
        )

    def forward(self, values):
        for layer in self.layers:
            values = checkpoint(layer, values, use_reentrant=False) if self.checkpointed else layer(values)
        return values


def training_step(model, batch):
    model(batch).square().mean().backward()
    model.zero_grad(set_to_none=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--width", type=int, default=256)
    options.add_argument("--layers", type=int, default=8)
    options.add_argument("--batch", type=int, default=1024)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = options.parse_args()

    profiler = GPUMemoryProfiler(device=chosen.device)
    model = Tower(chosen.width, chosen.layers, chosen.device)
    batch = torch.randn(chosen.batch, chosen.width, device=chosen.device)
    print(f"Figures: {profiler.basis} ({profiler.basis_reason})")
    for model.checkpointed in (False, True):
        name = "with checkpointing" if model.checkpointed else "without"
        with profiler.profile_context(name):
            training_step(model, batch)
        result = profiler.results[-1]
        over_start = result.memory_peak.allocated_memory - result.memory_before.allocated_memory
        bound = "" if result.peak_is_exact else "at least "
        print(f"{name:20} {bound}{format_bytes(over_start)} over the start, {result.execution_time:.3f} s")


if __name__ == "__main__":
    main()
