"""Why a child process of a command has no answer: one line in a file that the command reads."""

from __future__ import annotations

import os


def failed(folder: str, name: str, reason: str) -> int:
    """Leaves `reason` as one line in the file `name` of the folder; the child's exit code."""
    with open(os.path.join(folder, name), "w", encoding="utf-8", errors="replace") as file:
        file.write(" ".join(reason.split())[:400] + "\n")
    return 1
