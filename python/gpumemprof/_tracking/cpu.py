"""CPUMemoryTracker: the tracker, of the CPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .figures import TrackerStatistics
from .tracker import MemoryTracker


class CPUMemoryTracker(MemoryTracker):
    """A MemoryTracker of host memory, with alerts, phases and the flight recorder."""

    def __init__(
        self,
        sampling_interval: float = 0.5,
        max_events: int = 10_000,
        enable_alerts: bool = True,
        job_id: str | None = None,
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            "cpu",
            sampling_interval,
            max_events,
            enable_alerts,
            job_id=job_id,
            rank=rank,
            local_rank=local_rank,
            world_size=world_size,
            **options,
        )

    def get_statistics(self) -> dict[str, Any]:
        """Like MemoryTracker.get_statistics, with "mode": "cpu"."""
        return TrackerStatistics({"mode": "cpu", **super().get_statistics()})

    def export_events_with_timestamp(self, directory: str | Path, format: str = "csv") -> str:
        """Writes the events to a new file in `directory`, named by the time, and returns its path."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"cpu_tracker_{time.strftime('%Y%m%d_%H%M%S')}_{time.time_ns() % 10**9:09d}.{format}"
        self.export_events(str(path), format)
        return str(path)
