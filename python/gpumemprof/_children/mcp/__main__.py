"""`python -m gpumemprof._children.mcp OPTIONS -- FOLDER…`, the options as JSON: serves; the exit code of the command."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any

from ..._core.needed import needed
from ..told import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, end_now, say
from .folders import Folders, Refused

if TYPE_CHECKING:
    from .running import Runner


def _run(words: list[str]) -> int:
    options, folders = json.loads(words[0]), words[2:]
    try:
        import anyio
        from mcp.server import ServerRequestContext  # noqa: F401: from version 2 on
    except ImportError:
        return say(needed("the mcp package, 2.3 or newer,", '"mcp>=2.3"'), EXIT_BAD_INPUT)
    from .running import Runner
    from .server import serve
    from .tools import Toolbox

    try:
        box = Toolbox(
            Folders(folders), Runner(options["command"], memory=options["memory"], timeout_s=options["timeout_s"])
        )
    except Refused as refused:
        return say(str(refused), EXIT_BAD_INPUT)
    _limit(int(options["memory_bytes"]))
    if sys.stdin.isatty():
        say("waiting for a client of the Model Context Protocol on standard input; Ctrl-C ends it")
    _end_on_signals(box.runner)
    try:
        anyio.run(serve, box)
    except BaseException as error:
        if not _is_reader_gone(error):
            raise
        return EXIT_FAILED
    return EXIT_OK


def _end_on_signals(runner: Runner) -> None:
    """At once: a thread that waits for standard input would hold up everything else."""

    def end(number: int, frame: Any) -> None:
        runner.end_all()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def _is_reader_gone(error: BaseException) -> bool:
    inside = getattr(error, "exceptions", None)  # of a group, which Python 3.10 does not have
    return all(map(_is_reader_gone, inside)) if inside else isinstance(error, BrokenPipeError)


def _limit(memory_bytes: int) -> None:
    """Of address space; what is started inherits it."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(words: list[str]) -> None:
    end_now(lambda: _run(words))


if __name__ == "__main__":
    main(sys.argv[1:])
