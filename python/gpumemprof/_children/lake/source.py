"""A recording or snapshot, read once by the core, as rows of a lake's tables."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import TYPE_CHECKING, Any

from ..._core.native import native
from ..waiting import wait_for
from . import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHUNK_BYTES = 1 << 20


class Source:
    """Raises what gpumemprof.load() raises. `paths` are several recordings as one."""

    def __init__(self, paths: Sequence[str], *, seal: bool = True, anonymize: bool = False) -> None:
        self.paths = list(paths)
        self.is_anonymous = anonymize
        self.run = wait_for(lambda: native().read_run([os.fsencode(path) for path in paths], seal, anonymize))
        self.report = json.loads(wait_for(self.run.report))
        self.identity = self._identity()

    @property
    def wanted_name(self) -> str:
        """Of letters, digits, dots, dashes and underscores: safe as a folder, and to type in a query."""
        if self.is_anonymous:
            return "run"
        base = os.path.basename(os.path.abspath(self.paths[0]))
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", base)[:100].lstrip(".")
        return (name or "run") + (f"+{len(self.paths) - 1}" if len(self.paths) > 1 else "")

    @property
    def memories(self) -> int:
        return int(self.run.memories)

    @property
    def lost(self) -> tuple[str, bool]:
        """What is missing, as a sentence, and whether every event is there."""
        sentence, has_every_event = self.run.lost()
        return str(sentence), bool(has_every_event)

    def row_of_run(self, name: str) -> list[Any]:
        said, lost = self.report["source"], self.lost
        score = self.report.get("score") or {}
        return [
            name, schema.NAME, schema.VERSION, self.identity, said["path"], said["kind"], said["bytes"],
            said.get("writer_version_hint") or None, native().version,
            sum(row[_EVENTS] for row in self._ranks()), lost[1], self.report["lost"]["events"], lost[0] or None,
            score.get("value"),
        ]  # fmt: skip

    def rows_of_findings(self, name: str) -> list[list[Any]]:
        return [
            [
                name, number, found["kind"], found.get("name"), found["severity"], found["title"], found.get("bytes"),
                None if found.get("confidence") is None else str(found["confidence"]), found.get("device"),
                found.get("fix"), found.get("stack", [])[::-1] or None, json.dumps(found.get("evidence", {})),
            ]
            for number, found in enumerate(self.report["findings"])
        ]  # fmt: skip

    def tables(self) -> Iterator[tuple[str, int]]:
        """The tables that the core has rows of, each with a memory; 0 if it has none."""
        yield "ranks", 0
        yield "stacks", 0
        for memory in range(self.memories):
            for table in ("intervals", "categories", "samples", "steps", "slices"):
                yield table, memory

    def _ranks(self) -> Iterator[tuple[Any, ...]]:
        columns = self.run.batches("ranks").next()
        return zip(*columns)

    def _identity(self) -> str:
        """Of the processes that were recorded, else of the files' content."""
        digest = hashlib.sha256()
        processes = sorted(self.run.processes())
        digest.update(json.dumps(processes).encode())
        for path in [] if processes else self.paths:
            for file in _files(path):
                with open(file, "rb") as content:
                    while part := content.read(_CHUNK_BYTES):
                        digest.update(part)
        return digest.hexdigest()[:32]


_EVENTS = [column.name for column in schema.TABLES["ranks"]].index("events") - 1  # the core does not name the run


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
