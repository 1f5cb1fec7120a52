"""New locks for forked children: a lock that another thread held at the fork would be held there for ever."""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol


class RenewedAfterFork(Protocol):
    def _after_fork(self) -> None: ...


_owners: weakref.WeakSet[Any] = weakref.WeakSet()


def renews_after_fork(owner: RenewedAfterFork) -> None:
    """Has the owner's `_after_fork` called in every forked child, before its own code. `owner` is not kept alive.

    What the lock protects is as the other thread left it: a step that it was in the middle of is half done.
    """
    _owners.add(owner)


def _after_fork() -> None:
    for owner in list(_owners):
        owner._after_fork()


os.register_at_fork(after_in_child=_after_fork)
