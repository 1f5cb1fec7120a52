"""A file that a reader sees as it was, or whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def whole_file(path: Any) -> Iterator[str]:
    """The name of a file to make beside `path`; it takes that place after the block, or is removed if the block raises.

    A device or a pipe is written to and never replaced: its own name is given. Raises OSError.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        yield target  # a folder fails where it is opened
        return
    made = f"{target}.{os.urandom(4).hex()}.tmp"
    try:
        yield made
        os.replace(made, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise
