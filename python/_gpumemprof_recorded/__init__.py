"""gpumemprof's package in a recorded process, under a name that no program has: one may have a package `gpumemprof` of
its own, and gets that. Its modules import each other by relative names alone.

A line in a .pth file loads it into every program of an environment that is recorded:
`import os; os.environ.get("GPUMEMPROF_DIR") and __import__("_gpumemprof_recorded")`

What notes things is armed once the process imports a framework. Most processes of a program never do, such as the
shells and tools that it starts: they pay for this module and `when_imported`, which import nothing.
"""

from __future__ import annotations

import os
import sys

__path__ = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpumemprof")]

from ._core.when_imported import before_import, no_longer_before  # noqa: E402


def forget_folders() -> None:
    """Of the folders that the import system remembers, the rooms of this package: the program sees the package alone."""
    for folder in list(sys.path_importer_cache):
        if isinstance(folder, str) and folder.startswith(__path__[0] + os.sep):
            sys.path_importer_cache.pop(folder, None)


forget_folders()

_FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")


def arm_when_needed() -> None:
    """At once in an interpreter that was started for a process of multiprocessing: once that runs it is too late."""
    if "--multiprocessing-fork" in (getattr(sys, "orig_argv", ()) or getattr(sys, "argv", ())):
        _arm()
        return
    for name in _FRAMEWORKS:
        before_import(name, _arm)  # what a framework imports is waited for in turn


_is_armed = False


def _arm(module: object = None) -> None:
    global _is_armed
    if _is_armed:
        return
    _is_armed = True
    for name in _FRAMEWORKS:
        no_longer_before(name)
    from ._recorded import standing

    standing.arm()
    forget_folders()


def _try_when_imported() -> None:
    """For a run of `gpumemprof advise` alone."""
    from ._core.when_imported import when_imported

    def arm(module: object) -> None:
        from ._recorded import trying

        try:
            trying.arm()
        except BaseException as error:  # would be swallowed, and the run be taken for one with the change
            print(f"gpumemprof: the change cannot be tried: {error!r}", file=sys.stderr)
            os._exit(1)

    when_imported("torch", arm)


if os.environ.get("GPUMEMPROF_DIR"):
    arm_when_needed()
    if os.environ.get("GPUMEMPROF_TRY") or os.environ.get("GPUMEMPROF_TRY_STEPS"):
        _try_when_imported()
