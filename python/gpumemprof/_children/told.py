"""What a child says in place of its command: one line on stderr, and the command's exit codes."""

from __future__ import annotations

import signal
import sys
from typing import Any

EXIT_OK, EXIT_FAILED, EXIT_BAD_INPUT = 0, 1, 2


def end_on_signals() -> None:
    """Ctrl-C and a request to end become exceptions, so that what is private is removed."""

    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def plain(text: str) -> str:
    """Safe to print on a terminal: no control character is left."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def say(text: str, code: int = EXIT_OK) -> int:
    """Prints `gpumemprof: TEXT` as one line; the exit code."""
    line = plain(" ".join(text.split()))
    tool = sys.argv[0] if sys.argv[0] == "tfmemprof" else "gpumemprof"
    data = f"{tool}: {line}\n".encode(sys.stderr.encoding or "utf-8", "replace")
    sys.stderr.flush()
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()
    return code
