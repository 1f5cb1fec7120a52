"""Arms the out-of-memory recorder, and what notes TensorFlow's graphs, Keras' layers and PyTorch's modules, in a recorded
process."""

from __future__ import annotations

import os

from . import _oom_hook
from ._when_imported import when_imported


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


def note_layers(folder: str | None) -> None:
    """Has the names of Keras' layers recorded with what is allocated in them."""
    if folder is not None:
        from . import _keras_layers

        _keras_layers.arm()


def note_modules(folder: str | None) -> None:
    """Has the names of PyTorch's modules, parameters and optimizer state recorded, and where steps end."""
    if folder is not None and not os.environ.get("GPUMEMPROF_NO_ATTRIBUTION"):
        from . import _attribution

        _attribution.arm()


def explain_leaks(folder: str | None) -> None:
    """Has the process say who holds its tensors, where `gpumemprof run --explain-leaks` asks for it."""
    if folder is None or not os.environ.get("GPUMEMPROF_EXPLAIN_LEAKS"):
        return

    def begin(module: object) -> None:
        from . import _holders_arm

        _holders_arm.arm(folder)

    when_imported("torch.optim", begin)


def arm(folder: str | None = None, *, attribution: bool = True) -> None:
    """Has an uncaught out-of-memory exception leave a bundle. `folder`: where the process has begun to be recorded."""
    if folder is not None:
        _oom_hook.attached_folder = folder
    _oom_hook.watch(_standing)
    note_graphs(_oom_hook.recording_folder())
    note_layers(_oom_hook.recording_folder())
    if attribution:
        note_modules(_oom_hook.recording_folder())
    explain_leaks(_oom_hook.recording_folder())
