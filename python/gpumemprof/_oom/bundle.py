"""The files of a bundle, and how many bundles may stay."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from .._core.memory_errors import message_of, oom_error
from .._core.process_start import start_ticks
from .._core.torch import loaded_torch
from .._counting.host_memory import HostMemory
from .._telemetry.files import plain
from .live_memory import live_memory

if TYPE_CHECKING:
    from .recorder import OOMFlightRecorderConfig

SCHEMA_VERSION = 1
_BUNDLE = re.compile(r"oom_dump_\d{8}T\d{6}Z_\d+_[a-z]+_\d+")
_ABANDONED_S = 3600.0
_MOST_FRAMES = 200
_sequence = 0


def write_bundle(
    config: OOMFlightRecorderConfig,
    events: list[dict[str, Any]],
    *,
    reason: str,
    exception: BaseException,
    context: str | None,
    backend: str,
    metadata: Mapping[str, Any],
) -> str:
    """The folder of the new bundle. OSError or ValueError where it cannot be."""
    global _sequence
    _sequence += 1
    exception = oom_error(exception) or exception  # what the program raised from it has neither size nor line
    kind = backend if backend.isalpha() and backend.islower() else "unknown"
    created = datetime.now(timezone.utc)
    name = f"oom_dump_{created:%Y%m%dT%H%M%SZ}_{os.getpid()}_{kind}_{_sequence}"
    fixed = {
        "metadata.json": {
            "reason": reason,
            "exception_type": type(exception).__name__,
            "exception_module": type(exception).__module__,
            "exception_message": message_of(exception),
            "stack": _stack_of(exception),
            "context": context,
            "backend": backend,
            "captured_event_count": len(events),
            "custom_metadata": metadata,
        },
        "host.json": _host(),
        "environment.json": {**_process(), "cwd": _working_folder(), "system": _system()},
        "live_memory.json": live_memory(),
    }
    counters = _device_counters()
    if counters is not None:
        fixed["allocator_counters.json"] = counters
        fixed["allocator_limits.json"] = _device_limits()
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "bundle_name": name,
        "created_at_utc": created.isoformat(),
        "reason": reason,
        "backend": backend,
        "files": sorted([*fixed, "events.json", "manifest.json"]),
    }
    limit = config.max_total_mb << 20
    encoded = {file: _encoded(value) for file, value in fixed.items()}
    kept = events
    while True:
        encoded["events.json"] = _encoded(kept)
        encoded["manifest.json"] = _encoded({
            **manifest, "event_count": len(kept), "dropped_event_count": len(events) - len(kept),
        })  # fmt: skip
        size = sum(map(len, encoded.values()))
        if size <= limit or not kept:
            break
        kept = kept[len(kept) // 2 + 1 :]  # the newest half says most
    if size > limit:
        raise ValueError(f"a bundle of {size} bytes is larger than max_total_mb allows")

    os.makedirs(config.dump_dir, mode=0o700, exist_ok=True)
    with _folder_lock(config.dump_dir):
        # Room is made first: at no moment are there more bundles, or larger ones, than the limits say.
        make_room(config.dump_dir, config.max_dumps - 1, limit - size)
        temporary = os.path.join(config.dump_dir, f".{name}.tmp")
        os.mkdir(temporary, 0o700)
        try:
            for file, data in encoded.items():
                fd = os.open(os.path.join(temporary, file), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(fd, "wb") as out:
                    out.write(data)
            os.rename(temporary, os.path.join(config.dump_dir, name))
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return os.path.join(config.dump_dir, name)


def _process() -> dict[str, int | str]:
    """Which process of which host it is: a pid alone may be that of another host too."""
    process: dict[str, int | str] = {"pid": os.getpid(), "host": os.uname().nodename}
    try:
        process["start_ticks"] = start_ticks()
    except OSError:  # no /proc
        pass
    return process


def _host() -> dict[str, int | str | None]:
    """What the process may use of the host now, in bytes; None if the system does not tell."""
    facts: dict[str, int | str | None] = {
        "address_space_bytes": _of_file("/proc/self/status", "VmSize:", 1, 1024),
        "address_space_peak_bytes": _of_file("/proc/self/status", "VmPeak:", 1, 1024),
        "address_space_limit_bytes": _of_file("/proc/self/limits", "Max address space", 3, 1),  # the soft one
        "free_bytes": None,
        "limited_by": None,
    }
    try:
        reading = HostMemory().read()
    except (ImportError, MemoryError):  # no room is left to load the core into
        return facts
    if reading is not None:
        facts.update(free_bytes=reading.free_bytes, limited_by=reading.limit)
    return facts


def _of_file(path: str, line_begins: str, word: int, unit: int) -> int | None:
    """One number of a file of the kernel's; None if it is not there, or "unlimited"."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if line.startswith(line_begins) and len(words) > word and words[word].isdigit():
                    return int(words[word]) * unit
    except OSError:
        pass
    return None


def make_room(dump_dir: str, max_dumps: int, max_bytes: int) -> None:
    """Removes the oldest bundles until at most so many, of at most so many bytes, are left; nothing but bundles."""
    bundles = []
    for entry in os.scandir(dump_dir):
        if not entry.is_dir(follow_symlinks=False):
            continue
        if _BUNDLE.fullmatch(entry.name):
            bundles.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name, _size_of(entry.path)))
        elif entry.name.endswith(".tmp") and _BUNDLE.fullmatch(entry.name[1:-4]):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED_S:
                shutil.rmtree(entry.path, ignore_errors=True)  # its writer died in the middle of it
    bundles.sort()
    total = sum(size for _, _, size in bundles)
    while bundles and (len(bundles) > max_dumps or total > max_bytes):
        _, name, size = bundles.pop(0)
        shutil.rmtree(os.path.join(dump_dir, name))
        total -= size


class _folder_lock:
    """Several ranks may share the folder. Where locking is not to be had (some network file systems) it is left."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, ".lock")
        self._fd = -1

    def __enter__(self) -> None:
        try:
            import fcntl

            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            for _ in range(100):
                try:
                    return fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.05)
        except (ImportError, OSError):
            return

    def __exit__(self, *_: Any) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def _stack_of(exception: BaseException) -> list[str]:
    """ "FILE:LINE FUNCTION" of every frame that it passed through, where it was raised first."""
    traceback = BaseException.__dict__["__traceback__"].__get__(exception)
    lines: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        lines.append(f"{code.co_filename}:{traceback.tb_lineno} {getattr(code, 'co_qualname', code.co_name)}")
        traceback = traceback.tb_next
    return lines[: -_MOST_FRAMES - 1 : -1]


def _encoded(value: Any) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"


def _size_of(folder: str) -> int:
    return sum(
        os.lstat(os.path.join(where, file)).st_size for where, _, files in os.walk(folder) for file in files
    )


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _system() -> dict[str, Any]:
    try:
        from .._counting.machine import get_system_info

        return dict(get_system_info())
    except Exception:  # less is better than no bundle
        return {"platform": platform.platform(), "python_version": platform.python_version(), "argv0": sys.argv[:1]}


def _device_counters() -> dict[str, Any] | None:
    """What PyTorch's allocator says of every GPU that this process uses; None if it uses none."""
    torch = loaded_torch()
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        return {f"cuda:{i}": dict(torch.cuda.memory_stats(i)) for i in range(torch.cuda.device_count())}
    except Exception as error:
        return {"unknown": f"{type(error).__name__}: {error}"}


def _device_limits() -> dict[str, Any]:
    """What this process may reserve of each GPU by its own limit, in bytes; None if it has none or PyTorch (before
    2.6) does not tell."""
    torch = loaded_torch()
    if torch is None:
        return {}
    try:
        ask = getattr(torch.cuda, "get_per_process_memory_fraction", None)
        totals = [torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())]
        return {f"cuda:{i}": limit_of(ask(i) if ask else None, total) for i, total in enumerate(totals)}
    except Exception as error:
        return {"unknown": f"{type(error).__name__}: {error}"}


def limit_of(fraction: float | None, total_bytes: int) -> dict[str, Any]:
    """The allocator keeps bytes and tells them as a share of the device's, so the nearest whole number is theirs."""
    limit_bytes = round(fraction * total_bytes) if fraction is not None and fraction < 1 else None
    return {"limit_bytes": limit_bytes, "fraction": fraction, "total_bytes": total_bytes}
