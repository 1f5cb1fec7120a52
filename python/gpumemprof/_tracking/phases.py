"""Named parts of a program, as the tracker measures them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)  # two phases of the same name are two phases
class PhaseRecord:
    """`peak_bytes` is the highest known allocated bytes while the phase was open; None before any sample."""

    name: str
    metadata: dict[str, Any]
    phase_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    start_bytes: int | None = None
    end_bytes: int | None = None
    peak_bytes: int | None = None
    duration_s: float | None = None
    _began: float = 0.0

    def begin(self, allocated_bytes: int | None) -> None:
        self._began = time.monotonic()
        self.start_bytes = self.peak_bytes = allocated_bytes

    def saw(self, *sizes_bytes: int | None) -> None:
        """A sample, or a peak between two, while the phase is open."""
        self.peak_bytes = max((s for s in (self.peak_bytes, *sizes_bytes) if s is not None), default=None)

    def end(self, allocated_bytes: int | None) -> None:
        self.end_bytes = allocated_bytes
        self.duration_s = time.monotonic() - self._began

    def to_dict(self) -> dict[str, Any]:
        known = self.start_bytes is not None and self.end_bytes is not None
        return {
            "phase": self.name,
            "phase_id": self.phase_id,
            "duration_s": self.duration_s,
            "start_bytes": self.start_bytes,
            "end_bytes": self.end_bytes,
            "change_bytes": self.end_bytes - self.start_bytes if known else None,  # type: ignore[operator]
            "peak_bytes": self.peak_bytes,
            **self.metadata,
        }


class PhaseHandle:
    """An open phase. `exit()` may be called more than once; a `with` block calls it too."""

    def __init__(self, leave: Callable[[PhaseRecord], None], record: PhaseRecord) -> None:
        self._leave, self.record = leave, record

    @property
    def name(self) -> str:
        return self.record.name

    def exit(self) -> None:
        self._leave(self.record)

    def __enter__(self) -> PhaseHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.exit()
