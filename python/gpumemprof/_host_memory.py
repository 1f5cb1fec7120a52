"""Memory of this machine as this process may use it, from /proc and the control groups. Linux; absent elsewhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path


_MEMINFO = re.compile(r"^MemTotal:\s+(\d+) kB$.*^MemAvailable:\s+(\d+) kB$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class HostReading:
    """Bytes. `limit` says whose total it is: "machine", or the control group whose limit comes first."""

    total_bytes: int
    used_bytes: int
    free_bytes: int
    limit: str


class HostMemory:
    """Reads what there is in total, used and free; never raises, None where the system does not tell.

    In a control group with a limit below the machine's memory the group's figures count, page cache that the kernel
    can drop (inactive_file) not being counted as used. `root` replaces "/" in tests.
    """

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self._root = Path(root)
        self._meminfo = str(self._root / "proc/meminfo")
        self._groups = [
            (folder.name, *(str(folder / file) for file in files), reclaimable)
            for folder, (*files, reclaimable) in self._find_groups()
        ]

    def read(self) -> HostReading | None:
        nearest = machine = self._machine()
        for name, limit_file, used_file, stat_file, reclaimable in self._groups:
            limit = _number_in(limit_file)
            if limit is None or (machine is not None and limit >= machine.total_bytes):
                continue
            used = _number_in(used_file)
            if used is None:
                continue
            used = max(0, used - _field(stat_file, reclaimable))
            free = max(0, limit - used)
            # The nearest wall: a parent group or the machine itself may have less room than our own group.
            if nearest is None or free <= nearest.free_bytes:
                nearest = HostReading(limit, used, free, f"control group {name}")
        return nearest

    def _machine(self) -> HostReading | None:
        found = _MEMINFO.search(_text(self._meminfo))
        if found is None:
            return None
        total, available = (int(number) * 1024 for number in found.groups())
        return HostReading(total, max(0, total - available), available, "machine")

    def _find_groups(self) -> list[tuple[Path, tuple[str, str, str, str]]]:
        """The folders of our memory group and its parents, as far as they are to be seen from here."""
        versions = {
            "cgroup2": ("memory.max", "memory.current", "memory.stat", "inactive_file"),
            "cgroup": (
                "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file",
            ),
        }  # fmt: skip
        ours: dict[str, str] = {}
        for line in _text(self._root / "proc/self/cgroup").splitlines():
            _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
            if not controllers:
                ours["cgroup2"] = path
            elif "memory" in controllers.split(","):
                ours["cgroup"] = path
        found: list[tuple[Path, tuple[str, str, str, str]]] = []
        for line in _text(self._root / "proc/self/mountinfo").splitlines():
            before, _, after = line.partition(" - ")
            fields, kind = before.split(" "), after.split(" ")
            if len(fields) < 5 or kind[0] not in ours or (kind[0] == "cgroup" and "memory" not in kind[-1].split(",")):
                continue
            base = self._root / fields[4].lstrip("/")
            inside = os.path.relpath(ours[kind[0]], fields[3]) if ours[kind[0]].startswith(fields[3]) else "."
            folder = (base / inside) if not inside.startswith("..") else base
            while True:
                found.append((folder, versions[kind[0]]))
                if folder == base or base not in folder.parents:
                    break
                folder = folder.parent
        return found


def _text(path: str | Path) -> str:
    """A small file of the system, read as cheaply as can be: this happens at every sample."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts: list[bytes] = []
            while len(parts) < 256 and (part := os.read(fd, 1 << 16)):  # /proc gives a page at a time
                parts.append(part)
            return b"".join(parts).decode("ascii", "replace")
        finally:
            os.close(fd)
    except OSError:
        return ""


def _number_in(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None  # "max" is no limit


def _field(path: str, name: str) -> int:
    found = re.search(rf"^{name} (\d+)$", _text(path), re.MULTILINE)
    return int(found[1]) if found else 0
