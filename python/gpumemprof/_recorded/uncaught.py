"""Notes, beside the recording, the exception that ended this process: its type, its text and where it was raised.

No code of the program runs here: no `__str__`, no `__repr__`, no property of its exception.
"""

from __future__ import annotations

import os
import time
from types import CodeType, FrameType, TracebackType
from typing import Any

from .._core.memory_errors import message_of
from .._core.process_start import start_ticks

_SCHEMA = "gpumemprof.uncaught/1"
_MOST_FRAMES, _MOST_LETTERS = 64, 500
_TYPE = type.__dict__
_name_of, _module_of = _TYPE["__name__"].__get__, _TYPE["__module__"].__get__
_trace_of = BaseException.__dict__["__traceback__"].__get__


def _kind(error: BaseException) -> str:
    module, name = _module_of(type(error)), _name_of(type(error))
    return name if type(module) is not str or module in ("builtins", "__main__") else f"{module}.{name}"


def _stack(trace: TracebackType | None) -> list[str]:
    """Innermost first."""
    lines: list[str] = []
    while trace is not None:
        frame: FrameType = trace.tb_frame
        code: CodeType = frame.f_code
        lines.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return lines[: -_MOST_FRAMES - 1 : -1]


def _message(error: BaseException) -> str:
    """Its first line that has a word: torchrun's begins with a ruler. What PyTorch passes on from a worker of its own begins
    with where it was caught: then also the worker's error and its innermost line."""
    lines = [line for line in message_of(error).strip().splitlines() if any(letter.isalnum() for letter in line)]
    if not lines:
        return ""
    text = lines[0]
    if lines[0].startswith("Caught ") and "Original Traceback (most recent call last):" in lines[1:3]:
        places = [line.strip() for line in lines if line.startswith('  File "')]
        text += " " + lines[-1] + (f" ({places[-1]})" if places else "")
    return text[:_MOST_LETTERS]


def note(error: BaseException, folder: str) -> None:
    """Writes uncaught.PID.START.json into `folder`; the first exception of a process stays. Raises OSError."""
    import json

    pid, ticks = os.getpid(), start_ticks()
    document: dict[str, Any] = {
        "schema": _SCHEMA,
        "pid": pid,
        "start_ticks": ticks,
        "host": os.uname().nodename,
        "time_ns": time.monotonic_ns(),
        "kind": _kind(error),
        "message": _message(error),
        "stack": _stack(_trace_of(error)),
    }
    path = os.path.join(folder, f"uncaught.{pid}.{ticks}.json")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        json.dump(document, file, separators=(",", ":"))
