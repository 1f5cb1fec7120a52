"""Runs the gpumemprof command for a tool: within a limit of memory and of time, killed when nobody waits for it."""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import anyio

from ..told import plain
from .folders import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_BYTES = 16 << 20
_MOST_KEPT_BYTES = 32 << 20
_MOST_AT_ONCE = 2
_PATIENCE_S = 2.0


class Runner:
    """`memory` is the limit in words: this process has it, and what it starts inherits it."""

    def __init__(self, command: str, *, memory: str, timeout_s: float) -> None:
        self._command = command
        self.memory = memory
        self.timeout_s = timeout_s
        self._places = anyio.CapacityLimiter(_MOST_AT_ONCE)
        self._running: set[int] = set()
        self._kept: collections.OrderedDict[Any, str] = collections.OrderedDict()

    async def output_of(self, words: Sequence[str], *, paths: Sequence[str] = (), text: str = "") -> str:
        """What the command prints. An answer is kept while the files at `paths` are as they were, for its other pages.
        Raises Refused with the command's own line where it fails."""
        key = (tuple(words), text, repr([_state(path) for path in paths]))
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        async with self._places:
            output = await self._run(words, text)
        self._kept[key] = output
        while sum(map(len, self._kept.values())) > _MOST_KEPT_BYTES:
            self._kept.popitem(last=False)
        return output

    def end_all(self) -> None:
        """Asks all commands that run to end."""
        for pid in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)

    async def _run(self, words: Sequence[str], text: str) -> str:
        process = await anyio.open_process(
            [self._command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self._running.add(process.pid)
        try:
            with anyio.fail_after(self.timeout_s):
                output, errors, is_whole = await _talk(process, text)
                code = await process.wait()
        except TimeoutError:
            raise Refused(f"stopped after {self.timeout_s:g} s: ask something narrower (--timeout of the server)") from None
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            self._running.discard(process.pid)
        if not is_whole:
            return output[: output.rfind("\n") + 1] + f"(cut after {_MOST_BYTES >> 20} MiB: ask something narrower)\n"
        line = _said(errors)
        if code < 0 or (code and not line):
            why = f"the command ended by signal {-code}" if code < 0 else f"the command ended with exit code {code}"
            raise Refused(f"{why}: it may use {self.memory} of memory (--memory of the server)")
        if code and not output:
            raise Refused(line)
        # Losses and files that were left out: the figures are to be read with them.
        return output + (f"\nNote: {line}\n" if line else "")


async def _talk(process: anyio.abc.Process, text: str) -> tuple[str, str, bool]:
    """Its output, its errors, and whether that is all it had to say."""
    said = {"out": bytearray(), "err": bytearray()}
    is_whole = True

    async def write() -> None:
        assert process.stdin is not None
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.send(text.encode("utf-8", "replace"))
        await process.stdin.aclose()

    async def read(stream: Any, name: str, most: int) -> None:
        nonlocal is_whole
        async for part in stream:
            if len(said[name]) < most:
                said[name] += part
            elif name == "out":
                is_whole = False
                process.kill()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(read, process.stdout, "out", _MOST_BYTES)
        tasks.start_soon(read, process.stderr, "err", 1 << 16)
    return said["out"].decode("utf-8", "replace"), said["err"].decode("utf-8", "replace"), is_whole


async def _end(process: anyio.abc.Process) -> None:
    """Asked to end first, so that it removes what is private; it is alone in its group of processes."""
    if process.returncode is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with anyio.move_on_after(_PATIENCE_S):
                await process.wait()
                break
    await process.aclose()


def _said(errors: str) -> str:
    """The command's own lines as one, without its name."""
    name = "gpumemprof: "
    lines = [line[len(name) :] for line in errors.splitlines() if line.startswith(name)]
    return plain("; ".join(lines))[:600]


def _state(path: str) -> Any:
    """Changes with the content of a file, and of the files of a folder."""

    def of(one: str) -> tuple[str, int, int]:
        status = os.lstat(one)
        return one, status.st_size, status.st_mtime_ns

    inside = [entry.path for entry in os.scandir(path)] if os.path.isdir(path) else []
    return [of(one) for one in [path, *sorted(inside)]]
