"""DuckDB, if it is there."""

from __future__ import annotations

from typing import Any


class CannotDo(Exception):
    """One line for the user: what cannot be done, and what to do."""


def duckdb() -> Any:
    try:
        import duckdb as engine
    except ImportError as error:
        raise CannotDo("DuckDB is required: install it with `pip install \"gpumemprof[sql]\"`") from error
    return engine


def rows(connection: Any, statement: str, parameters: Any = None) -> list[Any]:
    """All rows: a result that is left unread would block the connection."""
    return list(connection.execute(statement, parameters).fetchall())


def quoted(text: str) -> str:
    """A literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
