"""The changes that were tried, their effect, and how to undo them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._core.printed import format_size


@dataclass(frozen=True)
class Measure:
    """One change. Bytes and times are compared with the same step right before it; None if not measured, with the
    `reason`.

    `agreement`: how losses and weights compare with those before: "bit for bit", "within 1.2e-07", or why that is
    unknown.
    """

    name: str
    applied: bool
    saved_bytes: int | None = None
    extra_time_s: float | None = None
    agreement: str = ""
    reason: str = ""
    modules: tuple[str, ...] = ()
    pieces: int = 1  # that a batch is cut into


@dataclass
class OptimizationResult:
    """Peaks and times of a step before and after. `fits`: the measured peak is within the budget."""

    budget_bytes: int
    before_bytes: int
    after_bytes: int
    before_time_s: float
    after_time_s: float
    basis: str
    basis_reason: str
    measures: tuple[Measure, ...]
    losses_before: tuple[float, ...]
    losses_after: tuple[float, ...]
    step: Callable[..., Any]
    notes: tuple[str, ...] = ()
    _undo: list[Callable[[], None]] = field(default_factory=list, repr=False)
    _optimizer: Callable[[], Any] = field(default=lambda: None, repr=False)

    @property
    def fits(self) -> bool:
        return self.after_bytes <= self.budget_bytes

    @property
    def optimizer(self) -> Any:
        """The optimizer that `step` uses: the given one, or the one that `optimizer_state` replaced it with; None if
        step() has its own. Schedulers of the given one do not affect another: create them for this one."""
        return self._optimizer()

    @property
    def applied(self) -> tuple[Measure, ...]:
        return tuple(measure for measure in self.measures if measure.applied)

    def undo(self) -> None:
        """Restores the model and its optimizers. A second call does nothing."""
        while self._undo:
            self._undo.pop()()

    def __str__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        lines = [
            f"{format_size(self.before_bytes)} -> {format_size(self.after_bytes)} at the peak of a step, "
            f"{self.before_time_s * 1e3:.1f} -> {self.after_time_s * 1e3:.1f} ms a step",
            f"{verdict} into {format_size(self.budget_bytes)} ({self.basis}: {self.basis_reason})",
        ]
        for one in self.measures:
            saved = "" if one.saved_bytes is None else f"saves {format_size(one.saved_bytes)}"
            cost = "" if one.extra_time_s is None else f"{one.extra_time_s * 1e3:+.1f} ms a step"
            words = [saved, cost, one.agreement and f"losses {one.agreement}", ", ".join(one.modules), one.reason]
            lines.append(f"  {'+' if one.applied else '-'} {one.name}: " + "; ".join(word for word in words if word))
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])
