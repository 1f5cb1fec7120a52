"""Writes a run into a lake: a folder of Parquet files beside those of other runs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from . import schema
from .engine import CannotDo, CannotWrite, connect, duckdb, quoted, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .source import Source

# Rows are gathered in memory until a group is full; a stack is as long as a page of text.
_ROW_GROUP, _ROW_GROUP_OF_STACKS = 122_880, 8_192
_MEMORY = "256MB"  # of DuckDB, whatever the length of the run; more goes to disk beside the output
_SPILLED = ".spilled"


def write(source: Source, folder: str, name: str = "") -> tuple[str, str]:
    """The run's name in the lake, `name` or after its file, and its folder, complete or not there. The same run, exported before, is replaced;
    another one of that name is left, and this one gets a number."""
    folder = os.path.abspath(folder)
    check(folder, source.paths)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: {error.strerror}") from error
    name = name or _name(folder, source)
    made = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        os.mkdir(made)
        _write_tables(source, name, made)
        shutil.rmtree(os.path.join(made, _SPILLED), ignore_errors=True)
        _put(made, os.path.join(folder, name))
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return name, os.path.join(folder, name)


def check(folder: str, inputs: Sequence[str]) -> None:
    """CannotDo or CannotWrite where the lake cannot be in this folder, as far as can be told before the run is read."""
    folder = os.path.abspath(folder)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise CannotDo(f"{folder}: is a file: a lake is a folder")
    if any(os.path.realpath(path) == os.path.realpath(folder) for path in inputs):
        raise CannotDo(f"{folder}: is the input: give another folder")
    # A run may be called like the file that it was made of.
    if os.path.isdir(folder) and any(entry.name.endswith(".gmp") and entry.is_file() for entry in os.scandir(folder)):
        raise CannotDo(f"{folder}: is a recording: give another folder")
    there = folder
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise CannotWrite(f"{folder}: {there} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CannotWrite(f"{folder}: {there} is not writable")


def _name(folder: str, source: Source) -> str:
    wanted = name = source.wanted_name
    number = 1
    while os.path.lexists(os.path.join(folder, name)) and identity_of(os.path.join(folder, name)) != source.identity:
        number += 1
        name = f"{wanted}-{number}"
    return name


def identity_of(run: str) -> str | None:
    """Of a run in a lake; None where its table of runs cannot be read."""
    engine = duckdb()
    try:
        with connect() as connection:
            found = rows(connection, "SELECT identity FROM read_parquet(?)", [os.path.join(run, "runs.parquet")])
    except (engine.Error, OSError):
        return None
    return str(found[0][0]) if found else None


def _put(made: str, place: str) -> None:
    """A reader sees the old run, or the new one, or for a moment none."""
    old = made + ".old"
    if os.path.lexists(place):
        os.rename(place, old)
    os.rename(made, place)
    shutil.rmtree(old, ignore_errors=True)


def _write_tables(source: Source, name: str, folder: str) -> None:
    with connect() as connection:
        rows(connection, "SET threads = 2")
        rows(connection, f"SET memory_limit = '{_MEMORY}'")
        rows(connection, f"SET temp_directory = {quoted(os.path.join(folder, _SPILLED))}")
        for table in schema.TABLES:
            if table == schema.BY_MEMORY:
                for memory in range(source.memories):
                    connection.register("core", source.run.stream(table, memory))
                    place = os.path.join(folder, schema.file_name(table, memory))
                    _copy(connection, _cast(table, name, "core", memory), place, name)
                continue
            place = os.path.join(folder, schema.file_name(table, 0))
            _copy(connection, _whole(connection, source, table, name), place, name)


def _whole(connection: Any, source: Source, table: str, name: str) -> str:
    """A query for all rows of a table of one file."""
    if table in ("runs", "findings"):
        values = [source.row_of_run(name)] if table == "runs" else source.rows_of_findings(name)
        columns = ", ".join(f"{column.name} {column.type}" for column in schema.TABLES[table])
        rows(connection, f"CREATE TABLE {table} ({columns})")
        for row in values:
            rows(connection, f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        return f"FROM {table}"
    parts = []
    for part, memory in source.tables():
        if part == table:
            connection.register(f"{table}_{memory}", source.run.stream(table, memory))
            parts.append(_cast(table, name, f"{table}_{memory}", memory))
    return " UNION ALL ".join(parts) if parts else no_rows(table)


def _cast(table: str, name: str, rows_of: str, memory: int) -> str:
    """The rows of the core as the schema has them."""
    said = {"run": quoted(name)}
    if any(column.name == "memory" for column in schema.TABLES[table]) and table != "ranks":
        said["memory"] = str(memory)
    parts = []
    for column in schema.TABLES[table]:
        value = said.get(column.name, column.name)
        if column.type == schema.LIST:
            value = f"string_split({value}, chr({ord(schema.BETWEEN_FRAMES)}))"
        parts.append(f"CAST({value} AS {column.type}) AS {column.name}")
    return f"SELECT {', '.join(parts)} FROM {rows_of}"


def no_rows(table: str) -> str:
    """A query with the columns of a table and no row."""
    columns = ", ".join(f"CAST(NULL AS {column.type}) AS {column.name}" for column in schema.TABLES[table])
    return f"SELECT {columns} WHERE false"


def _copy(connection: Any, query: str, place: str, name: str) -> None:
    said = f"{{gpumemprof_schema: {quoted(schema.NAME)}, gpumemprof_schema_version: '{schema.VERSION}', gpumemprof_run: {quoted(name)}}}"
    group = _ROW_GROUP_OF_STACKS if os.path.basename(place) == schema.file_name("stacks", 0) else _ROW_GROUP
    options = f"FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE {group}, KV_METADATA {said}"
    rows(connection, f"COPY ({query}) TO {quoted(place)} ({options})")
