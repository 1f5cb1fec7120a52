"""Runs and lakes, opened for queries: what is sound becomes views, what is not is named and left out."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from ..lake import parquet, schema
from ..lake.engine import CannotDo, check_exist, connect, duckdb, quoted, rows
from ..told import plain
from .daily import queries
from .kept import run_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FILE = re.compile(r"(?P<table>[a-z]+)(?:\.\d{1,9})?\.parquet")

# A wrong name would get the answer of a run that holds nothing. Without a sound table of ranks, memories are not known.
_CHECKS = (
    """CREATE MACRO is_run(name) AS CASE WHEN EXISTS (SELECT 1 FROM runs WHERE run = name) THEN true
        ELSE error('no run is named ' || name || ' (SELECT run FROM runs lists them)') END""",
    """CREATE MACRO is_memory(name, number) AS CASE WHEN EXISTS (SELECT 1 FROM ranks WHERE run = name AND memory = number)
        OR NOT EXISTS (SELECT 1 FROM ranks WHERE run = name) THEN true
        ELSE error(name || ' has no memory ' || number || ' (SELECT memory, device FROM peaks lists them)') END""",
)


class _Part(NamedTuple):
    """One file: `link` is ours, without characters that DuckDB takes for a pattern."""

    table: str
    link: str
    path: str
    lacks: tuple[str, ...]  # columns that were added after it was written


class Opened:
    """A connection with the tables, views and macros of docs/lake.md. `folder` is private, and outlives this."""

    def __init__(self, folder: str, *, seal: bool = True, say: Callable[[str], Any] = print) -> None:
        self._engine = duckdb()
        self._folder = folder
        self._say = say
        self._seal = seal
        self.left_out = 0
        self.runs: dict[str, list[_Part]] = {}
        self._files: list[str] = []
        self.connection: Any = connect()

    def add(self, paths: Sequence[str]) -> None:
        """Opens a lake, a run of one, or, if it is neither, a recording or snapshot, exported first."""
        check_exist(paths)
        for path in paths:
            if _is_run(path):
                self._add_run(path)
            elif found := _runs_in(path):
                for run in found:
                    self._add_run(run)
            else:
                private = os.path.join(self._folder, f"exported-{len(self.runs)}")
                run = run_of(path, private, seal=self._seal)
                self._say_what_is_lost(path, self._add_run(run))
        if not self.runs:
            raise CannotDo("no run could be opened")

    def make_views(self) -> None:
        for table, columns in schema.TABLES.items():
            parts = []
            for run, files in self.runs.items():
                of_table = [file for file in files if file.table == table]
                for lacks in sorted({file.lacks for file in of_table}):
                    names = ", ".join(_or_null(column, lacks) for column in columns[1:])
                    paths = ", ".join(quoted(file.link) for file in of_table if file.lacks == lacks)
                    parts.append(f"SELECT {quoted(run)} AS run, {names} FROM read_parquet([{paths}], union_by_name = true)")
            text = " UNION ALL ".join(parts) or parquet.no_rows(table)
            rows(self.connection, f"CREATE VIEW {table} AS {text}")
        for macro in _CHECKS:
            rows(self.connection, macro)
        for query in queries():
            text = query.with_names()
            if query.parameters:
                checks = [f"(SELECT is_run({name}))" for name in query.parameters if name.endswith("_run")]
                if "in_memory" in query.parameters:
                    checks.append("(SELECT is_memory(in_run, in_memory))")
                text = f"SELECT * FROM ({text}) WHERE {' AND '.join(checks)}" if checks else text
                rows(self.connection, f"CREATE MACRO {query.name}({', '.join(query.parameters)}) AS TABLE {text}")
            else:
                rows(self.connection, f"CREATE VIEW {query.name} AS {text}")

    def lock(self) -> None:
        """From now on queries read the opened files, and nothing else; statements.py keeps them from writing those."""
        allowed = ", ".join(quoted(path) for path in self._files)
        for setting in (
            f"allowed_paths = [{allowed}]",
            "temp_directory = ''",
            "enable_external_access = false",
            "python_enable_replacements = false",
            "lock_configuration = true",
        ):
            rows(self.connection, f"SET {setting}")

    def damaged(self) -> list[str]:
        """Files whose rows cannot be read, each line with the reason: asked after a query failed."""
        found = []
        for file in (file for files in self.runs.values() for file in files):
            columns = ", ".join(_or_null(column, file.lacks) for column in schema.TABLES[file.table])
            try:
                rows(self.connection, f"SELECT bit_xor(hash({columns})) FROM read_parquet({quoted(file.link)})")
            except self._engine.Error as error:
                found.append(f"{plain(file.path)}: is damaged: {' '.join(str(error).split())[:200]}")
        return found

    def _say_what_is_lost(self, path: str, run: str | None) -> None:
        for table in (part.link for part in self.runs.get(run or "", []) if part.table == "runs"):
            for sentence, has_every_event in rows(self.connection, f"SELECT lost, is_complete FROM read_parquet({quoted(table)})"):
                self.left_out += not has_every_event
                if sentence:
                    self._say(f"{path}: {sentence}")

    def _add_run(self, folder: str) -> str | None:
        """Its name; None if it is left out."""
        found = []
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            named = _FILE.fullmatch(entry.name)
            if named is None or named["table"] not in schema.TABLES:
                continue
            link = os.path.join(self._folder, f"{len(self._files)}.parquet")
            os.symlink(os.path.realpath(entry.path), link)
            try:
                found.append(_Part(named["table"], link, entry.path, self._lacks(entry, named["table"], link)))
                self._files.append(os.path.realpath(entry.path))
            except CannotDo as why:
                self._leave_out(entry.path, str(why))
                os.unlink(link)
        if not any(part.table == "runs" for part in found):
            self._leave_out(folder, "the run has no sound table of runs")
            return None
        name = wanted = os.path.basename(os.path.abspath(folder))
        number = 1
        while name in self.runs:
            number += 1
            name = f"{wanted}-{number}"
        if name != wanted:
            self._say(f"{folder}: named {name}, because another run is named {wanted}")
        self.runs[name] = found
        return name

    def _leave_out(self, path: str, why: str) -> None:
        self.left_out += 1
        self._say(f"{plain(path)}: left out: {why}")

    def _lacks(self, entry: os.DirEntry[str], table: str, link: str) -> tuple[str, ...]:
        """The columns that were added after a file was written. Raises CannotDo where it is not sound."""
        if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            raise CannotDo("it is not a regular file")
        try:
            said = rows(self.connection, f"SELECT key, value FROM parquet_kv_metadata({quoted(link)})")
            typed = rows(self.connection, f"DESCRIBE SELECT * FROM read_parquet({quoted(link)})")
        except self._engine.Error as error:
            raise CannotDo(str(error).splitlines()[0].replace(link, entry.name)) from error
        facts = {bytes(key): bytes(value) for key, value in said}
        if facts.get(b"gpumemprof_schema") != schema.NAME.encode():
            raise CannotDo("it is not of a lake of gpumemprof")
        version = facts.get(b"gpumemprof_schema_version", b"")
        if version != str(schema.VERSION).encode():
            told = version[:20].decode("ascii", "replace")
            raise CannotDo(f"it has version {told} of the schema, and this gpumemprof reads {schema.VERSION}")
        types = {row[0]: row[1] for row in typed}
        lacks = [column.name for column in schema.TABLES[table] if column.is_added and column.name not in types]
        for column in schema.TABLES[table]:
            if column.name not in lacks and types.get(column.name) != column.type:
                raise CannotDo(f"its column {column.name} is {types.get(column.name, 'missing')}, not {column.type}")
        return tuple(sorted(lacks))


def _or_null(column: schema.Column, lacks: tuple[str, ...]) -> str:
    return f"CAST(NULL AS {column.type}) AS {column.name}" if column.name in lacks else column.name


def _is_run(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, "runs.parquet"))


def _runs_in(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    return [run for run in (os.path.join(folder, name) for name in names) if _is_run(run)]
