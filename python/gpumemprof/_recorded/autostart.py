"""Has `standing` armed in a recorded process once it imports a framework. Most processes of a program never do, such
as the shells and tools that it starts: they pay for this module and `when_imported`, which import nothing. The package
`_gpumemprof_recorded` loads it.
"""

from __future__ import annotations

import os
import sys

from .._core.when_imported import before_import, no_longer_before

_FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")


def arm_when_needed() -> None:
    """At once in an interpreter that was started for a process of multiprocessing: once that runs it is too late."""
    if "--multiprocessing-fork" in sys.orig_argv:
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
    from . import standing

    standing.arm()


def _try_when_imported() -> None:
    """For a run of `gpumemprof advise` alone."""
    from .._core.when_imported import when_imported

    def arm(module: object) -> None:
        from . import trying

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
