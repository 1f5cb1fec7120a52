"""Begins the trace of a script once it imports torch, where `gpumemprof estimate` started it. A line of gpumemprof.pth
imports this in such processes alone."""

from __future__ import annotations

import os

from .._when_imported import when_imported


def _begin(_: object) -> None:
    folder = os.environ["GPUMEMPROF_ESTIMATE"]
    try:
        from . import script

        script.begin(folder, os.environ.get("GPUMEMPROF_ESTIMATE_TARGET", "meta"))
    except BaseException as error:
        # Better not to run at all than to train in earnest.
        with open(os.path.join(folder, f"{os.getpid()}.error"), "w", encoding="utf-8") as file:
            file.write(f"the tracer cannot start with this PyTorch: {type(error).__name__}: {error}\n")
        os._exit(1)


def arm() -> None:
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiled code cannot be followed: it runs as it is written
    with open(os.path.join(os.environ["GPUMEMPROF_ESTIMATE"], f"{os.getpid()}.armed"), "w"):
        pass  # the command knows that Python code of ours was there
    when_imported("torch", _begin)


arm()
