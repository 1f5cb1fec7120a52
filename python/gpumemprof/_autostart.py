"""Arms the out-of-memory recorder in a recorded process, at the price of importing one small module.

A line in a .pth file does it for every program of an environment, recorded or not:
`import os; os.environ.get("GPUMEMPROF_DIR") and __import__("gpumemprof._autostart")`
"""

from __future__ import annotations

from . import _oom_hook


class _Standing:
    """Loads the recorder when it is needed. Any failure of that stays here: the hook swallows it."""

    def _on_uncaught(self, error: BaseException, where: str) -> None:
        from .oom_flight_recorder import watch_uncaught_oom

        _oom_hook.unwatch(self)  # the recorder takes over
        watch_uncaught_oom()._on_uncaught(error, where)


_standing = _Standing()


def arm(folder: str | None = None) -> None:
    """Has an uncaught out-of-memory exception leave a bundle. `folder`: where the process has begun to be recorded."""
    if folder is not None:
        _oom_hook.attached_folder = folder
    _oom_hook.watch(_standing)


if _oom_hook.recording_folder() is not None:
    arm()
