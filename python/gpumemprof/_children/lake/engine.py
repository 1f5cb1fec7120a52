"""DuckDB, if it is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.needed import needed
from ..told import EXIT_BAD_INPUT, EXIT_FAILED, say
from ..waiting import wait_for


class CannotDo(Exception):
    """One line for the user: what cannot be done, and what to do."""


class CannotWrite(Exception):
    """One line: the output, and what the system said."""


def answered(call: Callable[[], int]) -> int:
    """The exit code of call(); what it cannot do is said in one line."""
    try:
        return call()
    except (CannotDo, ValueError, FileNotFoundError) as error:
        return say(str(error), EXIT_BAD_INPUT)
    except CannotWrite as error:
        return say(str(error), EXIT_FAILED)
    except MemoryError:
        return say("not enough memory", EXIT_FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        return say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error), EXIT_FAILED)


def duckdb() -> Any:
    try:
        import duckdb as engine
    except ImportError as error:
        raise CannotDo(needed("DuckDB", "duckdb")) from error
    return engine


def check_exist(paths: Sequence[str]) -> None:
    for path in paths:
        if not os.path.lexists(path):
            raise FileNotFoundError(f"{path}: No such file or directory")


def connect() -> Any:
    """A database in memory that fetches no extension and draws no progress between the rows."""
    connection = duckdb().connect(config={
        "autoload_known_extensions": False, "autoinstall_known_extensions": False, "allow_community_extensions": False,
    })  # fmt: skip
    rows(connection, "SET enable_progress_bar = false")
    return connection


def rows(connection: Any, statement: str, parameters: Any = None) -> list[Any]:
    """All rows: a result that is left unread would block the connection."""
    return list(wait_for(lambda: connection.execute(statement, parameters).fetchall(), connection.interrupt))


def quoted(text: str) -> str:
    """A literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
