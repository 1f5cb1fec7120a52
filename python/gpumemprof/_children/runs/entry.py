"""What is told of a run: figures of the core as they stand in its lake, and what the user said of it."""

from __future__ import annotations

import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any

from ..lake import parquet
from ..lake.engine import CannotDo, rows
from ..lake.source import Source
from ..sql.opened import Opened

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_LINES = 2_000
_MOST_TEXT = 1_000
_GIT_S = 10


class Added:
    """A run on its way into a store: its entry, and its lake in the folder `place`. Raises what Source raises."""

    def __init__(self, path: str, place: str, said: dict[str, Any], say: Callable[[str], Any]) -> None:
        source = Source([path], seal=False)
        _refuse_running(path, source.report.get("end") or {})
        self.id = source.identity
        self.lost, self.has_every_event = source.lost
        self.lake = parquet.write(source, place, self.id)[1]
        self.entry = {
            "schema": "gpumemprof.run", "schema_version": 1, "id": self.id, "name": source.wanted_name,
            "added_ns": time.time_ns(), "commit": said["commit"], "model": said["model"], "settings": said["settings"],
            **_machine(source.report), **self._figures(say),
        }  # fmt: skip

    def _figures(self, say: Callable[[str], Any]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="gpumemprof-runs-") as links:
            opened = Opened(links, say=say)
            opened.add([self.lake])
            opened.make_views()
            connection = opened.connection
            run = rows(connection, "SELECT source_kind, source_bytes, events, is_complete, lost, score FROM runs")[0]
            main = rows(connection, """
                SELECT memory, device, command, peak_bytes, peak_reserved_bytes, start_time_ns + COALESCE(wall_offset_ns, 0)
                FROM ranks WHERE is_main ORDER BY peak_bytes DESC""")  # fmt: skip
            lines = rows(connection, """
                SELECT COALESCE(line, '(no stack recorded)') AS line, CAST(SUM(size_bytes) AS BIGINT) AS size_bytes
                FROM peak_by_line WHERE memory = ? GROUP BY ALL ORDER BY size_bytes DESC, line""", [main[0][0] if main else -1])  # fmt: skip
            connection.close()
        said: dict[str, Any] = dict(zip(("kind", "bytes", "events", "is_complete", "lost", "score"), run))
        _, device, command, peak, reserved, began = main[0] if main else (None,) * 6
        return {
            **said, "device": device, "command": command, "peak_bytes": peak, "peak_reserved_bytes": reserved,
            "recorded_ns": began or None, "lines": [{"line": line, "size_bytes": size} for line, size in lines[:_MOST_LINES]],
            "lines_left_out": max(0, len(lines) - _MOST_LINES),
        }  # fmt: skip


def _refuse_running(path: str, end: dict[str, Any]) -> None:
    """What it holds so far is not the run. Raises CannotDo."""
    pids = [run["pid"] for run in end.get("runs", []) if run["state"] == "running"] or end.get("running_pids", [])
    if pids:
        raise CannotDo(f"{path}: is still being recorded (pid {pids[0]}): add it after its end")


def _machine(report: dict[str, Any]) -> dict[str, Any]:
    samples = report.get("device_samples") or {}
    hosts = sorted({process["host"] for process in report["processes"] if process.get("host")})
    boards = [device["name"] for device in samples.get("devices", []) if device.get("name")]
    return {"hosts": [host[:_MOST_TEXT] for host in hosts[:64]], "boards": [board[:_MOST_TEXT] for board in boards[:64]]}


def said_of(options: dict[str, Any]) -> dict[str, Any]:
    """What the user said: texts, and settings. Raises CannotDo."""
    for name in ("commit", "model"):
        if options[name] and len(options[name]) > _MOST_TEXT:
            raise CannotDo(f"--{name}: is longer than {_MOST_TEXT} characters")
    return {"commit": _commit(options["commit"]), "model": options["model"] or None, "settings": settings_of(options)}


def settings_of(options: dict[str, Any]) -> dict[str, str]:
    """Those of --set, as KEY=VALUE. Raises CannotDo."""
    settings = {}
    for text in options["settings"]:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CannotDo(f"--set {text[:60]}: write KEY=VALUE, such as batch=32")
        settings[key] = value
    return settings


def _commit(said: str) -> str | None:
    """HEAD is looked up where the command was called; everything else is kept as it is."""
    if said != "HEAD":
        return said or None
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=_GIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotDo("--commit HEAD: git names no commit here") from error
    return found.stdout.strip()
