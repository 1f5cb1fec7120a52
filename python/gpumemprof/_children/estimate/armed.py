"""Begins the trace of a script once it imports torch, where `gpumemprof estimate` started it. A line of gpumemprof.pth
imports this in such processes alone."""

from __future__ import annotations

import os
import sys

from ..._core.when_imported import when_imported


def _mark(kind: str, text: str = "") -> None:
    path = os.path.join(os.environ["GPUMEMPROF_ESTIMATE"], f"{os.getpid()}.{kind}")
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _begin(_: object) -> None:
    folder = os.environ["GPUMEMPROF_ESTIMATE"]
    try:
        _mark("begun")  # from here on the script is followed: what it does is not done in earnest
        from . import script

        script.begin(folder, os.environ.get("GPUMEMPROF_ESTIMATE_TARGET", "meta"))
    except BaseException as error:
        # Better not to run at all than to train in earnest.
        _mark("error", f"the tracer cannot start with this PyTorch: {type(error).__name__}: {error}\n")
        os._exit(1)


def _refuse(module: object) -> None:
    """Its program would train in earnest, to the end."""
    if "torch" in sys.modules:
        return
    name = getattr(module, "__name__", "another framework")
    _mark("error", f"the program uses {name}: estimate traces PyTorch programs\n")
    os._exit(1)


def arm() -> None:
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiled code cannot be followed: it runs as it is written
    _mark("armed")  # the command knows that Python code of ours was there
    when_imported("torch", _begin)
    for name in ("tensorflow", "jax"):
        when_imported(name, _refuse)


arm()
