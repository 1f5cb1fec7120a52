"""`python -m gpumemprof._children.sql OPTIONS -- PATH…`, the options as JSON: answers; the exit code of the command."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from ..lake.engine import CannotDo, answered, check_exist, duckdb
from ..told import EXIT_FAILED, EXIT_OK, end_now, say
from . import output
from .opened import Opened
from .prompt import converse
from .statements import Asker, NotAnswered

if TYPE_CHECKING:
    from collections.abc import Iterator


def _one_shot(asker: Asker, text: str, form: str) -> None:
    """Of several statements the last one's rows are the answer: JSON and CSV are one document."""
    statements = asker.split(text)
    if not statements:
        raise CannotDo("no query was given")
    for statement in statements[:-1]:
        asker.ask(statement, lambda names, rows: None)
    if asker.count_queries(statements[:-1]):
        say("only the last statement's rows are printed")
    asker.ask(statements[-1], lambda names, rows: output.write(names, rows, form, sys.stdout))
    sys.stdout.flush()


@contextlib.contextmanager
def _private_folder() -> Iterator[str]:
    """Signals wait while it is made and removed, so that none leaves it behind; and while DuckDB is loaded, which takes
    what a signal raises for a failure."""
    ending = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    duckdb()
    folder = tempfile.mkdtemp(prefix="gpumemprof-sql-")
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
        yield folder
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        shutil.rmtree(folder, ignore_errors=True)


def _answer(options: dict[str, Any], paths: list[str]) -> int:
    check_exist(paths)  # before DuckDB is looked for
    with _private_folder() as folder:
        opened = Opened(folder, seal=options["seal"], say=say)
        opened.add(paths)
        opened.make_views()
        if not options["allow_files"]:
            opened.lock()
        asker = Asker(opened.connection, allow_files=options["allow_files"], timeout_s=options["timeout_s"])
        if options["query"] is None and sys.stdin.isatty():
            converse(asker, options["format"])
        else:
            text = sys.stdin.read() if options["query"] is None else options["query"]
            try:
                _one_shot(asker, text, options["format"])
            except NotAnswered:
                for line in opened.damaged():
                    say(line)
                raise
        return EXIT_FAILED if opened.left_out else EXIT_OK


def main(words: list[str]) -> None:
    end_now(lambda: answered(lambda: _answer(json.loads(words[0]), words[2:])))


if __name__ == "__main__":
    main(sys.argv[1:])
