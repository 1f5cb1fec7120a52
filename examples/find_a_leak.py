#!/usr/bin/env python3
"""The commonest leak: losses that are kept with their graphs. A tracker sees it, and the analyzer says so.

    python examples/find_a_leak.py            # keeps loss.item(): no leak
    python examples/find_a_leak.py --leak     # keeps loss
"""

import argparse
import time

import torch

from gpumemprof import MemoryAnalyzer, MemoryTracker


def train(steps, keep):
    """`keep` says what of each loss is kept."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).to(device)
    kept = []
    for _ in range(steps):
        loss = model(torch.ones(1024, 512, device=device)).square().mean()
        kept.append(keep(loss))
        time.sleep(0.02)
    return kept


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--leak", action="store_true")
    options.add_argument("--steps", type=int, default=60)
    chosen = options.parse_args()

    with MemoryTracker(sampling_interval=0.01) as tracker:
        train(chosen.steps, (lambda loss: loss) if chosen.leak else (lambda loss: loss.item()))

    analyzer = MemoryAnalyzer()
    leaks = analyzer.detect_memory_leaks(tracker.get_events())
    for leak in leaks:
        print(f"{leak['type']} ({leak['severity']}): {leak['description']}")
    if all(leak["type"] == "spikes" for leak in leaks):  # what comes and goes again is not kept
        print("no leak found" + (f": {leaks.unknown}" if leaks.unknown else ""))
    for sentence in analyzer.generate_optimization_report(tracker.get_events())["recommendations"][:3]:
        print("-", sentence)


if __name__ == "__main__":
    main()
