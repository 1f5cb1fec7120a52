"""When this process began: with its PID that names it in a recording, as PIDs come back."""

from __future__ import annotations


def start_ticks() -> int:
    """Clock ticks since the machine was booted (/proc/[pid]/stat, field 22), as the recorder has it."""
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])
