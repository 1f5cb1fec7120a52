"""Where the figures of a GPU go, and how programs are run for them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parents[1]
sys.path.append(str(BENCH))
import pairs  # noqa: E402,F401
from launch import Failed, last_json, program  # noqa: E402,F401
from terminal_view import TerminalView  # noqa: E402,F401

ROOT = BENCH.parent
MIB = 1 << 20
POLL_S = 0.002
TESTS_BYTES = 20 << 30  # of the tests beside, eight at a time


@dataclass
class Row:
    what: str
    figure: str
    bound: str = ""
    met: bool | None = None  # None: there is no bound, or it could not be measured
    raw: dict[str, Any] = field(default_factory=dict)


class Room:
    """The GPU's memory, shared by programs that run side by side: each waits until there is room for what it is predicted to need."""

    def __init__(self) -> None:
        self._free_bytes: int | None = None  # not asked yet
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, size_bytes: int) -> Iterator[None]:
        with self._changed:
            if self._free_bytes is None:
                self._free_bytes = self._whole_bytes = device_bytes() - TESTS_BYTES
            size_bytes = min(size_bytes, self._whole_bytes)  # it is tried alone
            self._changed.wait_for(lambda: size_bytes <= self._free_bytes)
            self._free_bytes -= size_bytes
        try:
            yield
        finally:
            with self._changed:
                self._free_bytes += size_bytes
                self._changed.notify_all()


def device_bytes() -> int:
    import pynvml

    pynvml.nvmlInit()
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total)


@dataclass
class Work:
    """`out`: a folder for logs; recordings go into `out/recordings`."""

    command: str
    out: Path
    room: Room = field(default_factory=Room)

    def log(self, name: str, text: str) -> None:
        (self.out / f"{name}.txt").write_text(text)

    def recording(self, name: str) -> Path:
        (self.out / "recordings").mkdir(exist_ok=True)
        return self.out / "recordings" / name

    def gpumemprof(self, *words: object, name: str = "", timeout_s: float = 120, may_fail: bool = False) -> str:
        return self.run([self.command, *words], name=name, timeout_s=timeout_s, may_fail=may_fail)

    def asks(self, *words: object) -> Any:
        """What a command answers with --format json."""
        return json.loads(self.gpumemprof(*words, "--format", "json"))

    def run(
        self,
        words: list[object],
        *,
        name: str = "",
        env: dict[str, str] | None = None,
        timeout_s: float = 120,
        may_fail: bool = False,
    ) -> str:
        """stdout; Failed with the end of stderr. `name`: of the log with both."""
        argv = [str(word) for word in words]
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                text=True,
                env={**os.environ, **(env or {})},
                timeout=timeout_s,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(argv)}: no end after {timeout_s:g} s") from None
        if name:
            self.log(name, f"$ {' '.join(argv)}\n{done.stdout}{done.stderr}\nexit code {done.returncode}\n")
        if done.returncode != 0 and not may_fail:
            raise Failed(f"{' '.join(argv)}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
        return done.stdout

    def record(self, name: str, words: list[object], **more: Any) -> tuple[Path, str]:
        """The folder of the recording, and what the program printed."""
        folder = self.recording(name)
        return folder, self.run([self.command, "run", "-o", folder, "--", *words], name=f"run-{name}", **more)


def counters_of(stdout: str) -> dict[str, int]:
    """PyTorch's own peaks, as the program printed them; Failed where it ran out of memory, as it should not have."""
    printed: dict[str, int] = last_json(stdout)
    if "out_of_memory" in printed:
        raise Failed("it ran out of memory: the GPU is too small for it, or was full")
    return printed


def settings_env(settings: str) -> dict[str, str]:
    """As PyTorch has it: releases before 2.9 read the first alone."""
    return {"PYTORCH_CUDA_ALLOC_CONF": settings, "PYTORCH_ALLOC_CONF": settings} if settings else {}


def most_used_bytes(words: list[object], timeout_s: float = 180) -> tuple[int, str]:
    """The most that the driver said of the process while it ran, asked every 2 ms, and what it printed."""
    import pynvml

    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    process = subprocess.Popen(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    most = 0
    ended = threading.Event()

    def poll() -> None:
        nonlocal most
        while not ended.is_set():
            for one in pynvml.nvmlDeviceGetComputeRunningProcesses(device):
                if one.pid == process.pid:
                    most = max(most, one.usedGpuMemory or 0)
            time.sleep(POLL_S)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failed(f"{words}: no end after {timeout_s} s") from None
    finally:
        ended.set()
        poller.join()
    if process.returncode != 0:
        raise Failed(f"{words}: exit code {process.returncode}: {stderr.strip()[-600:]}")
    return most, stdout
