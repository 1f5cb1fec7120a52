"""Arms the out-of-memory recorder, and what notes TensorFlow's graphs, in a recorded process, at the price of importing
two small modules.

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


def note_graphs(folder: str | None) -> None:
    """Has the lines of code that made TensorFlow's operations written into `folder` when the process ends.

    Without the package tfmemprof the recording has the operations' names alone.
    """
    if folder is None:
        return
    try:
        from tfmemprof import _graphs
    except ImportError:
        return
    _graphs.arm(folder)


def arm(folder: str | None = None) -> None:
    """Has an uncaught out-of-memory exception leave a bundle. `folder`: where the process has begun to be recorded."""
    if folder is not None:
        _oom_hook.attached_folder = folder
    _oom_hook.watch(_standing)
    note_graphs(_oom_hook.recording_folder())


if _oom_hook.recording_folder() is not None:
    arm()
