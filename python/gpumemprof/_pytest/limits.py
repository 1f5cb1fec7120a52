"""The markers' grammar, and what is said where a limit is exceeded."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

MEMORY, LEAKS = "limit_gpu_memory", "limit_gpu_leaks"
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGTPE])(I?)(B?)|B)?\s*", re.IGNORECASE)
_SHOWN_LINES = 5
# As trace/names.cc calls them.
_DEVICES = frozenset("cpu cuda hip gpu xla xpu mps meta hpu mtia privateuse1".split())
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class WrongMarker(ValueError):
    """One line on what is wrong with a marker's arguments."""


class Limit(NamedTuple):
    """`text` is the size as it was written; `device` a kind of device, "" for the test's main one."""

    marker: str
    text: str
    size_bytes: int
    device: str
    is_decimal: bool
    warmups: bool


def size_of(text: str) -> tuple[int, bool]:
    """Bytes, and whether the unit is a decimal one: "2 GB" is 2,000,000,000, "2 GiB" and "2G" 2,147,483,648."""
    match = _SIZE.fullmatch(text)
    if match is None or ("." in match[1] and match[2] is None):
        raise ValueError(f'"{text}" is not a size: write "2 GB", "500 MiB" or bytes')
    if match[2] is None:
        return int(match[1]), True
    is_decimal = bool(match[4]) and not match[3]
    power = " KMGTPE".index(match[2].upper())
    number, _, fraction = match[1].partition(".")
    unit = (1000 if is_decimal else 1024) ** power
    return int(number) * unit + int(fraction or 0) * unit // 10 ** len(fraction), is_decimal


def limits_of(item: Any) -> list[Limit]:
    """The limits of a test: of each marker and device the one nearest to it. WrongMarker."""
    found: dict[tuple[str, str], Limit] = {}
    for name in (MEMORY, LEAKS):
        for mark in item.iter_markers(name):
            limit = _limit(name, *mark.args, **mark.kwargs) if len(mark.args) <= 1 else _limit(name, None)
            found.setdefault((name, limit.device), limit)
    return list(found.values())


def _limit(name: str, limit: Any = None, *, device: Any = None, warmups: Any = False, **others: Any) -> Limit:
    if others:
        raise WrongMarker(f"{name}: there is no {next(iter(others))}: it takes a size and device=")
    if warmups is not False and name != LEAKS:
        raise WrongMarker(f"{name}: only {LEAKS} takes warmups")
    if isinstance(limit, bool) or not isinstance(limit, (str, int)):
        raise WrongMarker(f'{name} takes one size: @pytest.mark.{name}("2 GB")')
    if device is not None and (not isinstance(device, str) or device not in _DEVICES):
        raise WrongMarker(f'{name}: device={device!r} is no kind of device: write "cpu" or "cuda"')
    try:
        size_bytes, is_decimal = size_of(str(limit))
    except ValueError as error:
        raise WrongMarker(f"{name}: {error}") from None
    return Limit(name, str(limit).strip(), size_bytes, device or "", is_decimal, bool(warmups))


def format_size(size_bytes: int, is_decimal: bool) -> str:
    base, units, value, power = (1000, _UNITS, float(size_bytes), 0) if is_decimal else (1024, _BINARY_UNITS, float(size_bytes), 0)
    while value >= base - 0.5 and power + 1 < len(units):
        value, power = value / base, power + 1
    if power == 0:
        return f"{size_bytes:,} bytes"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {units[power]}"


def main_device(memories: dict[str, Any]) -> str:
    """The accelerator that held most, else the CPU; "" where nothing was allocated."""
    return max(memories, key=lambda kind: (kind != "cpu", memories[kind]["peak_bytes"]), default="")


def exceeded(limit: Limit, memories: dict[str, Any]) -> str:
    """What is said where the limit is exceeded, number first, then the lines; empty if it is not."""
    device = limit.device or main_device(memories)
    memory = memories.get(device)
    if memory is None:
        return ""
    if limit.marker == MEMORY:
        return _told("peak", memory["peak_bytes"], limit, memory, memory["lines"])
    # As pytest-memray does: of each line.
    leaking = [line for line in memory["lines_at_end"] if line["bytes"] > limit.size_bytes]
    return _told("leak", leaking[0]["bytes"], limit, memory, leaking) if leaking else ""


def _told(what: str, size_bytes: int, limit: Limit, memory: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    if size_bytes <= limit.size_bytes:
        return ""
    shown, allowed = format_size(size_bytes, limit.is_decimal), format_size(limit.size_bytes, limit.is_decimal)
    if shown == allowed:
        shown = f"{size_bytes:,} bytes"
    holders = [f"{format_size(line['bytes'], limit.is_decimal)} at {place(line)}" for line in lines[:_SHOWN_LINES]]
    text = f"{what} {shown} exceeds the limit {limit.text}" + (f": {holders[0]}" if holders else "")
    text += "".join(f"\n  {holder}" for holder in holders[1:])
    return text + f"\n{before_text(size_bytes, memory['before_bytes'], limit.is_decimal)}" if what == "peak" else text


def before_text(peak_bytes: int, before_bytes: int, is_decimal: bool) -> str:
    """Both figures: what the body of the test allocated, and what there was before."""
    before, both = format_size(before_bytes, is_decimal), format_size(before_bytes + peak_bytes, is_decimal)
    return f"{before} were live before the test's body, at most {both} during it"


def place(line: dict[str, Any]) -> str:
    """ "model.py:12 forward"."""
    where = line["file"] + (f":{line['line']}" if line["line"] else "")
    return f"{where} {line['function']}".strip() or "(no stack recorded)"
