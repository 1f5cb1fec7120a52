"""What a child says in place of its command: one line on stderr, and the command's exit codes."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_OK, EXIT_FAILED, EXIT_BAD_INPUT = 0, 1, 2


def end_on_signals() -> None:
    """Ctrl-C and a request to end become exceptions, so that what is private is removed."""

    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_now(main: Callable[[], int]) -> None:
    """Ends the process with the code of main(), or of the signal that came: a thread that still reads is not waited for."""
    end_on_signals()
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = say("stopped", 130)
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BrokenPipeError:  # the reader of our output left: nothing to complain of
        code = EXIT_FAILED
    except ImportError as error:  # what was not built or is not installed, with what to do
        code = say(str(error), EXIT_BAD_INPUT)
    except OSError as error:  # a full disk
        code = say(f"standard output: {error.strerror}", EXIT_FAILED)
    os._exit(code)


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
