"""Entries as a table, CSV or JSON: the printer of `sql`."""

from __future__ import annotations

import datetime
import sys
from typing import Any

from ..sql import output

_ID_DIGITS = 12


def write_list(entries: list[dict[str, Any]], line: str, form: str) -> None:
    """Oldest first; with `line` also what the lines that have it in their text held at each peak."""
    is_table = form == "table"
    names = ["id", "recorded", "commit", "model", "settings", "machine", "device", "peak_bytes", "lost", "score", "name"]
    if line:
        names[7:7] = ["line_bytes"]
    made = []
    for entry in sorted(entries, key=_time):
        run = entry["id"][:_ID_DIGITS] if is_table else entry["id"]
        settings, boards, hosts = _listed(entry)
        machine = ", ".join(filter(None, (boards, hosts)))
        commit = entry.get("commit") or None
        row = [run, _when(entry), commit[:_ID_DIGITS] if commit and is_table else commit, entry.get("model"), settings or None,
               machine or None, entry.get("device"), entry.get("peak_bytes"), lost_of(entry, is_table), entry.get("score"),
               entry.get("name")]  # fmt: skip
        if line:
            row[7:7] = [line_bytes(entry, line)]
        made.append(tuple(row))
    output.write(names, made, form, sys.stdout)


def lost_of(entry: dict[str, Any], is_short: bool) -> str | None:
    """What is missing of its events, in short without the reasons; None where none is: its peak is exact."""
    lost: str | None = None if entry.get("is_complete") else entry.get("lost")
    return lost.removeprefix("LOST: ").partition(": ")[0] if lost and is_short else lost


def line_bytes(entry: dict[str, Any], text: str) -> int | None:
    """Of the lines that have `text`, at the peak: 0 where none held any; None where the entry does not have all lines, or none."""
    held = [one["size_bytes"] for one in entry["lines"] if text in one["line"]]
    return sum(held) if held or (entry["lines"] and not entry.get("lines_left_out")) else None


def words_of(entry: dict[str, Any]) -> list[str]:
    """What is told of a run, a line each."""
    settings, boards, hosts = _listed(entry)
    said = {
        "id": entry["id"], "name": entry.get("name"), "recorded": _when(entry), "commit": entry.get("commit"),
        "model": entry.get("model"), "settings": settings, "hosts": hosts, "boards": boards,
        "command": entry.get("command"), "lost": entry.get("lost"),
    }  # fmt: skip
    return [f"{name:<10}{value}" for name, value in said.items() if value]


def _listed(entry: dict[str, Any]) -> list[str]:
    """Settings, boards and hosts, each as one text."""
    settings = [f"{key}={value}" for key, value in (entry.get("settings") or {}).items()]
    return [", ".join(one) for one in (settings, entry.get("boards") or [], entry.get("hosts") or [])]


def _time(entry: dict[str, Any]) -> tuple[int, str]:
    return int(entry.get("recorded_ns") or entry["added_ns"]), str(entry["id"])


def _when(entry: dict[str, Any]) -> str | None:
    """When it was recorded, else nothing: when it was added says nothing of the run."""
    at = entry.get("recorded_ns")
    if not at:
        return None
    try:
        return datetime.datetime.fromtimestamp(at / 1e9, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return None
