"""Host memory of this process from the kernel, and the source of figures if there is no better one."""

from __future__ import annotations

import os
import time

from .._core.native import native
from .devices import Device
from .spans import Figures, NoOwn, Raw, Reading

# Reading it costs several microseconds, which is more than a whole profiled call may.
RSS_RESOLUTION_NS = 1_000_000

_rss_bytes = 0
_rss_time_ns = -RSS_RESOLUTION_NS


def process_bytes() -> tuple[int, int, int]:
    """(resident memory of this process now, its highest so far, virtual memory), 0 if the system does not say."""
    try:
        read = native().process_bytes
    except ImportError:  # the package without its native module: slower, the same figures
        read = _process_bytes_in_python
    global process_bytes
    process_bytes = read
    result: tuple[int, int, int] = read()
    return result


def _process_bytes_in_python() -> tuple[int, int, int]:
    return status_bytes("VmRSS") or 0, status_bytes("VmHWM") or 0, status_bytes("VmSize") or 0


def process_look(blocks: int) -> tuple[int, int, int, float]:
    """The same, and the seconds of CPU that the process has used. `blocks` is 1 where a profiled block begins and -1
    where it ends, else 0: the kernel's file stays open while there are any."""
    try:
        read = native().process_look
    except ImportError:
        read = _process_look_in_python
    global process_look
    process_look = read
    result: tuple[int, int, int, float] = read(blocks)
    return result


def _process_look_in_python(_blocks: int) -> tuple[int, int, int, float]:
    return (*_process_bytes_in_python(), time.process_time())


def resident_bytes() -> tuple[int, int]:
    """The first two of process_bytes()."""
    return process_bytes()[:2]


def read_rss_bytes() -> int:
    """Resident memory of this process now; 0 if the system does not say."""
    return resident_bytes()[0]


def rss_bytes(now_ns: int) -> int:
    """Resident memory of this process, at most RSS_RESOLUTION_NS old. `now_ns` is time.perf_counter_ns()."""
    global _rss_bytes, _rss_time_ns
    if now_ns - _rss_time_ns >= RSS_RESOLUTION_NS:
        _rss_bytes = read_rss_bytes()
        _rss_time_ns = now_ns
    return _rss_bytes


def _forget_rss() -> None:
    global _rss_time_ns
    _rss_time_ns = -RSS_RESOLUTION_NS


os.register_at_fork(after_in_child=_forget_rss)


def status_bytes(field: str) -> int | None:
    """A field of /proc/self/status that is in kB (VmHWM, VmRSS, RssAnon…), None if it is not there."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                name, _, value = line.partition(b":")
                if name == field.encode():
                    return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


class HostSource(NoOwn):
    """Figures of a process in which nothing counts tensors: its resident memory, of everything in it."""

    basis = "host"

    def __init__(self, device: Device, why: str) -> None:
        self.device = device
        self.basis_reason = (
            "resident memory of the whole process; allocated and freed are its net growth, not what was allocated, since "
            + why
        )

    def read(self) -> Reading:
        return _reading(*resident_bytes())

    def begin(self, in_context: bool = False) -> HostSpan:
        return HostSpan()

    def start_bytes(self, raw: Raw) -> int:
        return int(raw[3])

    def figures(self, raw: Raw) -> Figures:
        allocated, freed, peak, rss, highest, end_rss, end_highest = raw
        risen = end_highest > highest
        reason = self.basis_reason
        if not risen:
            reason += "; the peak is the higher of before and after: the process was larger before, so its own is unknown"
        return Figures(
            before=_reading(rss, highest),
            after=_reading(end_rss, end_highest),
            peak_bytes=peak,
            peak_is_exact=risen,
            allocated_bytes=allocated,
            freed_bytes=freed,
            basis_reason=reason,
        )


def _reading(rss: int, highest: int) -> Reading:
    # The host has no pool of free blocks between the process and its tensors: reserved is what is resident.
    highest = max(rss, highest)
    return Reading(rss, rss, highest, highest, rss, 0)


class HostSpan:
    """Resident memory before and after, and its high-water mark where that rose in between."""

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before = resident_bytes()

    def end(self) -> Raw:
        rss, highest = self._before
        end_rss, end_highest = resident_bytes()
        growth = end_rss - rss
        peak = max(rss, end_rss, end_highest if end_highest > highest else 0)
        return max(growth, 0), max(-growth, 0), peak, rss, highest, end_rss, end_highest
