"""The machine's memory available to this process, from the core. Linux; absent elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .._core.native import native


@dataclass(frozen=True)
class HostReading:
    """Bytes. `limit` says whose total it is: "machine", or the control group that leaves the least room."""

    total_bytes: int
    used_bytes: int
    free_bytes: int
    limit: str


class HostMemory:
    """Reads what there is in total, used and free; None if the system does not tell. As the command: of our control
    group, those above it and the machine the one with the least room counts, page cache that the kernel can drop
    (inactive_file) not being counted as used. `root` replaces "/" in tests.
    """

    def __init__(self, root: str | os.PathLike[str] = "") -> None:
        self._root = os.fsencode(root)

    def read(self) -> HostReading | None:
        found = native().host_memory(self._root)
        if found is None:
            return None
        total, used, free, group = found
        return HostReading(total, used, free, "machine" if group is None else f"control group {group}")
