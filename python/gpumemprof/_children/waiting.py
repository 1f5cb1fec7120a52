"""Work in C++ that looks for no signals, while Python does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_LOOK_S = 0.1


def wait_for(work: Callable[[], T], stop: Callable[[], Any] | None = None) -> T:
    """What work() gives, or raises, in a thread of its own. What a signal raises meanwhile ends the wait: work that
    `stop` can stop is then waited for, other work is left, and told.end_now() ends it with the process."""
    result: list[T] = []
    failed: list[BaseException] = []
    is_done = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            is_done.set()

    threading.Thread(target=run, daemon=True).start()
    try:
        while not is_done.wait(_LOOK_S):  # Thread.join() takes the thread for ended when a signal comes
            pass
    except BaseException:
        if stop:
            stop()
            is_done.wait()
        raise
    if failed:
        raise failed[0]
    return result[0]
