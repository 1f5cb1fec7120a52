"""Recommendations for findings. Every sentence names its finding, or says that it is general."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .gaps import GapFinding
from .score import Part


@dataclass(frozen=True)
class Advice:
    """The words of one framework. `general` is for where nothing was found; the others are by what was."""

    general: tuple[str, ...]
    leaks: Mapping[str, str]
    fragmentation: tuple[str, ...]
    peak: str


TORCH = Advice(
    general=(
        "General: run inference under torch.no_grad(), so that nothing is kept for a backward pass",
        "General: collect loss.item() or loss.detach(), not the loss itself, which holds its whole graph",
        "General: try mixed precision (torch.autocast): activations take half the memory",
        "General: use gradient checkpointing (torch.utils.checkpoint) if activations take most of the memory",
        "General: reduce the batch size and accumulate gradients if a step does not fit",
        "General: give DataLoader pin_memory=True and a few workers if the GPU waits for data",
    ),
    leaks={
        "monotonic_increase": "Find what keeps tensors from step to step: a list of losses, a cache, a hook",
        "spikes": "Need less at that moment: smaller pieces, checkpointing, or in-place operations",
        "insufficient_cleanup": "Drop what is no longer needed before the next phase: del it, optimizer.zero_grad()",
    },
    fragmentation=(
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "Keep shapes equal from step to step",
    ),
    peak="Reduce the batch size, use gradient checkpointing or mixed precision",
)


def recommendations_of(
    leaks: Sequence[dict[str, Any]],
    patterns: Sequence[Any],
    gaps: Sequence[GapFinding],
    peak: Part,
    advice: Advice = TORCH,
) -> list[str]:
    """The most severe first; without any finding the general ones, called so."""
    order = ("critical", "warning", "info")
    found: list[tuple[int, str]] = []
    for leak in leaks:
        if leak["type"] in advice.leaks:
            words = f"{advice.leaks[leak['type']]} ({leak['type']}: {leak['description']})"
            found.append((order.index(leak["severity"]), words))
    for pattern in patterns:
        if pattern.pattern_type == "fragmentation":
            words = " and ".join(_lower(advice.fragmentation[:2]))
            found.append((order.index(pattern.severity), f"{words} (fragmentation: {pattern.description})"))
    for gap in gaps:
        found.append((order.index(gap.severity), f"{gap.remediation[0]} ({gap.classification}: {gap.description})"))
    if peak["value"] is not None and peak["value"] < 10:
        found.append((0 if peak["value"] < 5 else 1, f"{advice.peak} (peak: {peak['reason']})"))
    if found:
        return [text for _, text in sorted(found, key=lambda pair: pair[0])]
    return list(advice.general)


def suggestions_for(pattern_type: str, advice: Advice = TORCH) -> list[str]:
    """For one pattern of a series; empty if it is nothing to mend, like a sawtooth."""
    known = {
        "steady_growth": [advice.leaks["monotonic_increase"]],
        "spike": [advice.leaks["spikes"]],
        "fragmentation": list(advice.fragmentation),
    }
    return known.get(pattern_type, [])


def _lower(sentences: Sequence[str]) -> list[str]:
    """All but the first begin with a small letter, to be joined into one."""
    return [text if i == 0 else text[0].lower() + text[1:] for i, text in enumerate(sentences)]
