"""The start time of this process; with its PID it identifies the process in a recording, because PIDs are reused."""

from __future__ import annotations


def start_ticks() -> int:
    """Clock ticks since the machine was booted (/proc/[pid]/stat, field 22), as the recorder has it."""
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])
