"""Writes a run as one SQLite file: the tables of a lake, with lists as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from typing import TYPE_CHECKING, Any

from ..._core.whole_file import whole_file
from . import schema
from .engine import CannotDo, CannotWrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .source import Source

_TYPES = {schema.NUMBER: "INTEGER", schema.TRUTH: "INTEGER", schema.REAL: "REAL"}
_INDEXES = ("intervals (run, memory, birth_event)", "intervals (run, stack)", "stacks (run, stack)")


def write(source: Source, path: str) -> tuple[str, str]:
    """The run's name and the file, complete or as it was before."""
    path = os.path.realpath(path)
    if os.path.isdir(path):
        raise CannotDo(f"{path}: is a folder: SQLite writes a file")
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/null would become a file
        raise CannotDo(f"{path}: is no regular file: SQLite cannot write to a device or a pipe")
    if any(os.path.realpath(one) == os.path.realpath(path) for one in source.paths):
        raise CannotDo(f"{path}: is the input: give another file")
    try:
        with whole_file(path) as made, contextlib.closing(sqlite3.connect(made, isolation_level=None)) as connection:
            _fill(connection, source, source.wanted_name)
    except (sqlite3.Error, OSError) as error:
        raise CannotWrite(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error
    return source.wanted_name, path


def _fill(connection: sqlite3.Connection, source: Source, name: str) -> None:
    # Nobody reads the file before it is whole, and what is left of a crash is thrown away.
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    connection.execute("BEGIN")
    for table, columns in schema.TABLES.items():
        typed = ", ".join(f'"{column.name}" {_TYPES.get(column.type, "TEXT")}' for column in columns)
        connection.execute(f"CREATE TABLE {table} ({typed})")
    _insert(connection, "runs", iter([source.row_of_run(name)]))
    _insert(connection, "findings", iter(source.rows_of_findings(name)))
    for table, memory in source.tables():
        _insert(connection, table, _rows(source, table, memory, name))
    for index in _INDEXES:
        connection.execute(f"CREATE INDEX {index.split(' ')[0]}_by_{index.split(', ')[-1].rstrip(')')} ON {index}")
    connection.execute("COMMIT")


def _rows(source: Source, table: str, memory: int, name: str) -> Iterator[list[Any]]:
    columns = schema.TABLES[table]
    has_memory = table != "ranks" and columns[1].name == "memory"
    said: list[Any] = [name, memory] if has_memory else [name]
    lists = [index for index, column in enumerate(columns) if column.type == schema.LIST]
    batches = source.run.batches(table, memory)
    while batch := batches.next():
        for values in zip(*batch):
            row = [*said, *values]
            for index in lists:
                row[index] = row[index] and row[index].split(schema.BETWEEN_FRAMES)
            yield row


def _insert(connection: sqlite3.Connection, table: str, all_rows: Iterator[list[Any]]) -> None:
    places = ", ".join("?" * len(schema.TABLES[table]))
    plain = ([json.dumps(value) if isinstance(value, list) else value for value in row] for row in all_rows)
    connection.executemany(f"INSERT INTO {table} VALUES ({places})", plain)
