"""The stacks that hold this process's memory now, from its own growing recording."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from glob import escape, glob
from typing import Any

from .._core.recording_folder import recording_folder

MAX_HOLDERS = 100
_TIMEOUT_S = 60.0
# Another process reads the recording: this one has just run out of memory, and its limits are not to be trusted.
_READER = "import sys; from _gpumemprof_recorded._core.native import native; sys.stdout.write(native().analyze_recording(sys.argv[1]))"


def live_memory(folder: str | None = None) -> dict[str, Any]:
    """{"basis": "exact", "devices": [{"device", "live_bytes", "blocks", "holders"}]}, or "basis" None and a "reason".

    A holder is {"bytes", "count", "stack"}, largest first. `folder`: the recording's; default: of this process.
    """
    folder = folder or recording_folder()
    if not folder:
        return _unknown("this process is not recorded: use gpumemprof run or gpumemprof.attach(folder)")
    try:
        parts = glob(os.path.join(escape(folder), f"*.{os.getpid()}.*.gmp"))
        if not parts:
            return _unknown(f"the recording in {folder} has no events of process {os.getpid()}")
        newest = max(parts, key=os.path.getmtime)
        analysis = json.loads(_analyze(newest))
        return {
            "basis": "exact",
            "recording": newest,
            "lost": analysis.get("lost"),
            "devices": [_device(device) for device in analysis["devices"]],
        }
    except (OSError, ValueError, KeyError, TypeError, MemoryError, subprocess.SubprocessError) as error:
        return _unknown(f"the recording in {folder} could not be read: {type(error).__name__}: {error}")


def _analyze(path: str) -> bytes:
    environment = {
        key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("GPUMEMPROF_")
    }
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (package, environment.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", _READER, path],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise ValueError(lines[-1])
    return done.stdout


def _device(device: dict[str, Any]) -> dict[str, Any]:
    end = device["end"]
    holders = device["holders_at_end"]
    return {
        "device": device["device"],
        "live_bytes": end["allocated_bytes"],
        "blocks": end["blocks"],
        "peak_bytes": device["peak"]["allocated_bytes"],
        "holders": [{key: holder.get(key) for key in ("bytes", "count", "stack")} for holder in holders[:MAX_HOLDERS]],
        "more_holders": max(0, len(holders) - MAX_HOLDERS),
    }


def _unknown(reason: str) -> dict[str, Any]:
    return {"basis": None, "reason": reason, "devices": []}
