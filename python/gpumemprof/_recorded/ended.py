"""The exception that ended the main thread. Python keeps it, and the variables of the functions that it left, as
`sys.last_value` until the process is gone. A notebook keeps those of its cells there, too, and goes on."""

from __future__ import annotations

import sys

_printed = 0  # its id


def note(error: BaseException) -> None:
    """Python is about to print it."""
    global _printed
    _printed = id(error)


def by_exception() -> BaseException | None:
    """None where the process goes on, or ends without one."""
    error: BaseException | None = sys.__dict__.get("last_value")
    return error if error is not None and id(error) == _printed else None
