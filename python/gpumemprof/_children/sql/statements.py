"""Statements, one at a time: only those that read, and views, macros and tables in memory, unless files are allowed."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from ..lake import schema
from ..lake.engine import CannotDo, duckdb
from ..waiting import wait_for
from .daily import queries

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of DuckDB's kinds of statements. PREPARE, COPY, ATTACH, EXPORT, LOAD, CALL and whatever a newer DuckDB adds are not among
# them: by such a statement the opened files could be written. SET is harmless, as the configuration is locked.
_TAKEN = {"SELECT", "CREATE", "DROP", "SET"}
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:ANALYZE\s+)?", re.IGNORECASE)
_NO_TABLE = re.compile(
    r"(?P<what>Catalog Error: Table (?P<function>Function )?with name \S+ does not exist!)"
    r'(?: Did you mean "(?:\w+\.)*(?P<meant>\w+)"\?)?'
)
_ROWS = 1000


class NotAnswered(CannotDo):
    """A statement was right, as far as that can be seen, and failed when its rows were read."""


class Asker:
    def __init__(self, connection: Any, *, allow_files: bool = False, timeout_s: float = 0) -> None:
        self._connection = connection
        self._allow_files = allow_files
        self._timeout_s = timeout_s
        engine = duckdb()
        self._error = engine.Error
        self._is_wrong = (engine.ParserException, engine.BinderException, engine.CatalogException, engine.PermissionException)

    def split(self, text: str) -> list[Any]:
        """The statements of a text. Raises CannotDo with one line where it is no SQL, or not what may be asked."""
        try:
            statements = list(self._connection.extract_statements(text))
        except self._error as error:
            raise CannotDo(_one_line(error)) from error
        for statement in statements:
            if not self._allow_files and not self._is_taken(statement):
                raise CannotDo(
                    f"{_kind(statement)} is not allowed here: queries only read what was opened (--allow-files lifts this)"
                )
        return statements

    def ask(self, statement: Any, use: Any) -> None:
        """Runs one statement and calls use(names, rows), which come as they are asked for. Raises CannotDo with one line."""
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self._connection.interrupt()

        timer = threading.Timer(self._timeout_s, stop) if self._timeout_s > 0 else None
        if timer:
            timer.daemon = True
            timer.start()
        try:
            wait_for(lambda: self._connection.execute(statement), self._connection.interrupt)
            description = self._connection.description or []
            use([column[0] for column in description], self._rows())
            self._connection.fetchall()  # what is left unread would block the next one
        except self._error as error:
            if is_late.is_set():
                raise CannotDo(f"stopped after {self._timeout_s:g} s (--timeout)") from error
            raise (CannotDo if isinstance(error, self._is_wrong) else NotAnswered)(_one_line(error)) from error
        finally:
            if timer:
                timer.cancel()

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        while some := self._connection.fetchmany(_ROWS):
            yield from some

    @staticmethod
    def count_queries(statements: list[Any]) -> int:
        """Those whose rows somebody may want."""
        return sum(_kind(one) in ("SELECT", "EXPLAIN") for one in statements)

    def _is_taken(self, statement: Any) -> bool:
        kind = _kind(statement)
        if kind != "EXPLAIN":
            return kind in _TAKEN
        # EXPLAIN ANALYZE runs what it explains, so that has to be a query as well.
        try:
            explained = self._connection.extract_statements(_EXPLAIN.sub("", statement.query, count=1))
        except self._error:
            return False
        return [_kind(one) for one in explained] == ["SELECT"]


def _kind(statement: Any) -> str:
    return str(statement.type).rpartition(".")[2]


def _one_line(error: Exception) -> str:
    """Without the picture of the query that DuckDB draws below, and without names of its own tables."""
    text = " ".join(str(error).split("\nLINE ")[0].split())[:600]
    unknown = _NO_TABLE.match(text)
    if not unknown:
        return text
    is_function = unknown["function"] is not None
    ours = {query.name: query.call for query in queries() if bool(query.parameters) == is_function}
    if not is_function:
        ours = {**dict.fromkeys(schema.TABLES, ""), **ours}
    return text if unknown["meant"] in ours else f"{unknown['what']} There are {', '.join(call or name for name, call in ours.items())}"
