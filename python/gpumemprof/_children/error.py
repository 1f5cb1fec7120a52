"""Why a child process of a command has no answer: one line in a file that the command reads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any


class NoAnswer(Exception):
    """One sentence for the user."""


def failed(folder: str, name: str, reason: str) -> int:
    """Leaves `reason` as one line in the file `name` of the folder; the child's exit code."""
    with open(os.path.join(folder, name), "w", encoding="utf-8", errors="replace") as file:
        file.write(" ".join(reason.split())[:400] + "\n")
    return 1


def answered(folder: str, name: str, answer: Callable[[], Any], unforeseen: str = "") -> int:
    """Leaves what answer() gives in FOLDER/answer.json, or why it gives nothing in the file `name`; the exit code."""
    try:
        found = answer()
    except NoAnswer as error:
        return failed(folder, name, str(error))
    except Exception as error:
        return failed(folder, name, f"{unforeseen}{type(error).__name__}: {error}")
    with open(os.path.join(folder, "answer.json"), "w", encoding="utf-8", errors="replace") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    return 0
