"""`python -m gpumemprof._children.lake FORMAT OUTPUT [seal] [anonymize] -- PATH…`: writes the run; the exit code of the
command."""

from __future__ import annotations

import resource
import sys
import time

from ..told import EXIT_FAILED, EXIT_OK, end_now, say
from . import parquet, sqlite
from .engine import CannotDo, CannotWrite, answered, check_exist, duckdb
from .source import Source


def _run(words: list[str]) -> int:
    between = words.index("--")
    (to, output, *flags), paths = words[:between], words[between + 1 :]
    begin = time.monotonic()
    try:
        check_exist(paths)
        if to == "parquet":
            parquet.check(output, paths)
            duckdb()  # before minutes of reading
        source = Source(paths, seal="seal" in flags, anonymize="anonymize" in flags)
        name, place = (parquet if to == "parquet" else sqlite).write(source, output)
    except (CannotDo, CannotWrite, ValueError, MemoryError, OSError):
        raise
    except Exception as error:  # of DuckDB: a full disk, most often
        raise CannotWrite(f"{output}: cannot be written: {error}") from error
    if sys.stderr.isatty():
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        say(f"run {name} written to {place} ({time.monotonic() - begin:.1f} s, {most} MiB of memory)")
    sentence, has_every_event = source.lost
    if sentence:
        say(sentence)
    return EXIT_OK if has_every_event else EXIT_FAILED


def main(words: list[str]) -> None:
    end_now(lambda: answered(lambda: _run(words)))


if __name__ == "__main__":
    main(sys.argv[1:])
