"""Questions from a terminal: a statement ends with a semicolon, a line that begins with a dot is for the prompt."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..lake import schema
from ..lake.engine import CannotDo
from ..told import say
from . import output
from .daily import queries

if TYPE_CHECKING:
    from .statements import Asker

_HELP = """\
.tables        the tables, views and macros
.schema TABLE  its columns
.quit          leave (or Ctrl-D)
A query ends with a semicolon: SELECT * FROM peaks; Ctrl-C stops one that takes too long.
"""


def converse(asker: Asker, form: str) -> int:
    try:
        import readline  # noqa: F401: input() edits lines with it
    except ImportError:
        pass
    sys.stdout.write("SELECT * FROM peaks; shows the peaks. .tables lists what there is, .help explains, .quit leaves.\n")
    text = ""
    while True:
        try:
            line = input("   ...> " if text else "sql> ")
        except EOFError:
            sys.stdout.write("\n")
            return 0
        except KeyboardInterrupt:
            text = ""
            sys.stdout.write("\n")
            continue
        if not text and line.strip().startswith("."):
            if line.strip() in (".quit", ".exit"):
                return 0
            _answer(line.split())
            continue
        text += line + "\n"
        if not text.strip():
            text = ""
        if text.rstrip().endswith(";"):
            _ask(asker, text, form)
            text = ""


def _ask(asker: Asker, text: str, form: str) -> None:
    try:
        for statement in asker.split(text):
            asker.ask(statement, lambda names, rows: output.write(names, rows, form, sys.stdout))
            sys.stdout.flush()
    except CannotDo as error:
        say(str(error))
    except KeyboardInterrupt:
        say("stopped")


def _answer(words: list[str]) -> None:
    if words[0] == ".tables":
        for table in schema.TABLES:
            sys.stdout.write(f"{table:<32} table\n")
        for query in queries():
            sys.stdout.write(f"{query.call:<32} {query.meaning}\n")
    elif words[0] == ".schema" and words[1:] and words[1] in schema.TABLES:
        for column in schema.TABLES[words[1]]:
            sys.stdout.write(f"{column.name:<20} {column.type:<10} {column.meaning}\n")
    else:
        sys.stdout.write(_HELP)
