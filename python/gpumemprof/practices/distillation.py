"""A small model that learns from a large one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("distillation")


class KnowledgeDistillation:
    """Knowledge distillation. The teacher runs in evaluation mode, so that its dropout adds no noise and its batch
    norms do not learn from the student's data, and without gradients, so nothing of its passes is kept."""

    def __init__(self, teacher_model: Any, student_model: Any, temperature: float = 4.0, alpha: float = 0.7) -> None:
        """`alpha`: the share of the labels; the rest is the teacher's."""
        self.teacher, self.student = teacher_model.eval(), student_model
        self.temperature, self.alpha = temperature, alpha

    def distillation_loss(
        self, student_outputs: Any, teacher_outputs: Any, labels: Any, criterion: Callable[[Any, Any], Any]
    ) -> Any:
        """`alpha` · the labels' loss + (1 - `alpha`) · the divergence from the teacher · temperature²."""
        functional = torch.nn.functional
        own = criterion(student_outputs, labels)
        soft_teacher = functional.softmax(teacher_outputs.detach() / self.temperature, dim=1)
        soft_student = functional.log_softmax(student_outputs / self.temperature, dim=1)
        divergence = functional.kl_div(soft_student, soft_teacher, reduction="batchmean")
        return self.alpha * own + (1 - self.alpha) * divergence * self.temperature**2

    def train_step(self, inputs: Any, labels: Any, optimizer: Any, criterion: Callable[[Any, Any], Any]) -> float:
        """One step of the student; returns its loss. Gradients are dropped after the step, not before the next one."""
        with torch.no_grad():
            teacher_outputs = self.teacher(inputs)
        loss = self.distillation_loss(self.student(inputs), teacher_outputs, labels, criterion)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())
