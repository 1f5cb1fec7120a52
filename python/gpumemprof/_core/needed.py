"""What a missing library is named by, everywhere."""

from __future__ import annotations

import sys


def needed(what: str, packages: str) -> str:
    """What is missing in this Python, and what to install, by the names that an index has."""
    return f"{what} is required: install it for {sys.executable} with `pip install {packages}`"
