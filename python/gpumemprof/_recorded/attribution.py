"""Tells the probe what frames cannot show: the names of modules, parameters and optimizer state, and where steps end.

Everything that runs in the program is in the C++ module `_marks`; this only arms it. The interpreter calls it when memory
was allocated in a module that has no name yet, and PyTorch after an optimizer's step. No hook of a module, of autograd or
of dispatch is registered.
"""

from __future__ import annotations

import atexit
import os
import sys

from .._core.recording_folder import recording_folder
from .._core.when_imported import when_imported

TYPE_CHECKING = False  # as in typing, whose import alone takes 10 ms
if TYPE_CHECKING:
    from typing import Any

_marks: Any = None  # the module; False if this process is not recorded, or not by this Python's package


def marks() -> Any:
    """The module `_marks`; None, at once, where this process is not recorded."""
    global _marks
    if _marks is None:
        _marks = False
        if recording_folder() is not None:
            try:
                from .. import _marks as found

                _marks = found if found.find(_attached_library()) else False
            except ImportError:
                pass
    return _marks or None


def _attached_library() -> str | None:
    """Of a probe that was not preloaded, so that its names are not those of the whole process."""
    native = sys.modules.get(f"{str(__package__).partition('.')[0]}._native")
    return native.probe_library() if native is not None else None


def arm() -> None:
    """In a process that is recorded: from now on, or from when PyTorch is imported."""
    global _marks
    _marks = _marks or None  # it may not have been recorded before
    when_imported("torch.nn.modules.module", _begin)


def _begin(module: Any) -> None:
    found = marks()
    if found is not None and found.begin(module.Module, module.torch._C):
        os.register_at_fork(after_in_child=found.forked)
        if "IPython" in sys.modules:  # its handler drops the notebook's variables; it was there before, so is called later
            atexit.register(found.program_ends)
        when_imported("torch.optim.optimizer", _follow_optimizers)


class _AfterStep:
    """A hook after an optimizer's step, of which `_marks` takes the calls. What torch.compile sees is this function: it
    follows it, finds that there is nothing to do, and the program's graphs and their breaks are what they were."""

    def __call__(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        pass


def _follow_optimizers(module: Any) -> None:
    module.register_optimizer_step_post_hook(marks().hook_of(_AfterStep))
