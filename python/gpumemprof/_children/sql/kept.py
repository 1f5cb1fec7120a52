"""Recordings and snapshots as runs of lakes in the user's cache folder, so that a second question needs no export."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from ..._core.native import native
from ..lake import parquet
from ..lake.engine import CannotWrite, duckdb
from ..lake.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

_KIND = ".lakes"


def run_of(path: str, private: str, *, seal: bool) -> str:
    """The folder of the run, complete. It is in `private` if it cannot be kept: the program still writes to the
    recording, or the user has no cache folder. Raises what gpumemprof.load() and parquet.write() raise."""
    lake = _kept_lake(path)
    found = _only_run(lake) if lake else None
    if found:
        return found
    source = Source([path], seal=seal)
    lake = _kept_lake(path)  # reading may have sealed it, which changes the file
    if lake:
        with contextlib.suppress(OSError, CannotWrite, duckdb().Error):  # a full disk: then not there
            return _keep(source, lake)
    return parquet.write(source, private)[1]


def _kept_lake(path: str) -> str:
    """A folder that another content of the file would not have; empty if there is none."""
    place, key = native().cache_place([os.fsencode(path)], _KIND, native().__file__)
    # The tables also say how the file was named.
    return os.path.join(os.fsdecode(place), hashlib.sha256(key + os.fsencode(path)).hexdigest()[:32]) if key else ""


def _only_run(lake: str) -> str | None:
    with contextlib.suppress(OSError):
        for name in os.listdir(lake):
            return os.path.join(lake, name)
    return None


def _keep(source: Source, lake: str) -> str:
    place = os.path.dirname(lake)
    os.makedirs(place, mode=0o700, exist_ok=True)
    made = os.path.join(place, f".{os.getpid()}")
    try:
        parquet.write(source, made)
        with contextlib.suppress(OSError):  # another process was first
            os.rename(made, lake)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    for old in _left_over(place, os.path.basename(lake)):
        shutil.rmtree(old, ignore_errors=True)
    run = _only_run(lake)
    if run is None:
        raise FileNotFoundError(lake)
    return run


def _left_over(place: str, name: str) -> Iterator[str]:
    """Of an earlier content of the file, and of processes that were killed."""
    for entry in os.listdir(place):
        is_at_work = entry.startswith(".") and os.path.exists(f"/proc/{entry[1:]}")
        if entry != name and not is_at_work:
            yield os.path.join(place, entry)
