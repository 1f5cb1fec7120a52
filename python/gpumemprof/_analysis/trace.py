"""A PyTorch snapshot or a recording, opened for analysis: `gpumemprof.load(path)`."""

from __future__ import annotations

import json
import operator
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .._core.native import native
from .._core.needed import needed

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_SEGMENTS = "a recording has no segments of the GPU's allocator"


def load(path: str | os.PathLike[str]) -> Trace:
    """Opens a snapshot of `torch.cuda.memory._dump_snapshot()`, a folder of `gpumemprof run`, or one of its .gmp files,
    recognized by content. No code in the file is executed.

    A snapshot is read completely at once; a recording's events are read at the first access. Raises FileNotFoundError
    if there is no such path, ValueError with one line (and the byte) for a damaged or unsupported file, OSError if it
    cannot be read.
    """
    return Trace(path)


class Events:
    """The events of a trace, oldest first, as one NumPy array per column, all of the same length.

    The arrays are read-only views of the reader's memory, which lives as long as any of them. A column that the file
    does not have is None, with the reason in `Trace.unknown`. Reading a column needs NumPy; `len()` and Arrow do not.
    As Arrow data (`__arrow_c_stream__`) the columns can be read by pyarrow, pandas, polars or DuckDB: `action`,
    `device` and `stream` are then dictionary-encoded, and single unknown values are null.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return int(self._trace.event_count())

    @cached_property
    def time_ns(self) -> Any:
        """int64: since 1970 for a snapshot, the machine's monotonic clock for a recording; None without times."""
        return self._column("time_ns")

    @cached_property
    def action(self) -> Any:
        """uint8: an index of `actions`."""
        return self._column("action")

    @cached_property
    def address(self) -> Any:
        """uint64: of the block or segment; 0 for `oom` and `snapshot`, which have no address."""
        return self._column("address")

    @cached_property
    def size_bytes(self) -> Any:
        """uint64: the requested size (GPU recordings: the size as rounded by the allocator), the segment's in
        `segment_…`, the refused size in `oom`. A free has the size of its block, or 0 if unknown."""
        return self._column("size_bytes")

    @cached_property
    def stack(self) -> Any:
        """uint32 for `Trace.stack()`; 0 if no stack is known."""
        return self._column("stack")

    @cached_property
    def device(self) -> Any:
        """uint16: an index of `Trace.devices`."""
        return self._column("device")

    @cached_property
    def thread(self) -> Any:
        """uint32: an index of `Trace.threads`, 4294967295 if unknown; None for snapshots."""
        return self._column("thread")

    @cached_property
    def stream(self) -> Any:
        """uint16: an index of `streams`; None if the file has no streams."""
        return self._column("stream")

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """The names of actions by their number: "alloc", "free_requested", … as `export --to jsonl` writes them."""
        return tuple(self._trace.actions())

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """CUDA stream numbers in order of first use; 0 is the default stream."""
        return tuple(self._trace.streams())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """One record batch through the Arrow C stream interface; the columns are not copied. Another schema than its
        own is not made: `requested_schema` is passed over, as the interface allows."""
        return self._trace.arrow_stream()

    def _column(self, name: str) -> Any:
        try:
            import numpy as np  # noqa: F401: what the native module makes the array with
        except ImportError as error:
            raise ImportError(needed("NumPy, for columns of events,", "numpy")) from error
        return self._trace.column(name)


class Trace:
    """The result of `gpumemprof.load()`. Its answers have the names and units of the command's; each method names the
    command. Methods may be called from any thread; long ones let other threads run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fsdecode(path)
        self._native = native().load_trace(os.fsencode(path))
        self._analysis: str | None = None

    def _repr_html_(self) -> str:
        """In a notebook: the page of `gpumemprof view`, of at most 10 MB."""
        from .._core.page import framed, page_of

        return framed(page_of(self.path), height=860)

    @property
    def kind(self) -> str:
        """`pytorch_snapshot` or `recording`."""
        return str(self._native.kind)

    @cached_property
    def events(self) -> Events:
        """All events, in time order if every device has times, otherwise device by device."""
        return Events(self._native)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Device names by number: "cuda:0", "cpu"; "4711/cpu" if several processes have a device of that name."""
        return tuple(label for label, _, _ in self._native.devices())

    @cached_property
    def threads(self) -> list[dict[str, Any]]:
        """By number: `tid`, `name`, and the PID as `process`. Empty for snapshots."""
        return list(self._native.threads())

    @cached_property
    def segments(self) -> list[dict[str, Any]]:
        """The segments that the allocator held at the end, by device and address.

        Each has `device`, `address`, `size_bytes`, `allocated_bytes`, `active_bytes`, `requested_bytes`, `stream`,
        `pool` ((0, 0) for the default pool, and in files without pools), `is_large`, `is_expandable`, `stack` and
        `blocks`: each with `address`, `size_bytes`, `requested_bytes` (for a free block that of its last user), `state`
        ("allocated", "pending_free", "free") and `stack`. Empty for recordings, with the reason in
        `unknown["segments"]`.
        """
        return list(self._native.segments() or ())

    @cached_property
    def unknown(self) -> dict[str, str]:
        """Why a column of `events` is None or `segments` is empty."""
        reasons: dict[str, str] = dict(self._native.unknown())
        if self._native.segments() is None:
            reasons["segments"] = _NO_SEGMENTS
        return reasons

    @cached_property
    def lost(self) -> dict[str, Any]:
        """What is missing in `events`: `events`, `bytes`, the `reasons`, and `more_than_counted`, True if an unknown
        number is missing as well."""
        return dict(self._native.lost())

    @property
    def peak(self) -> dict[str, dict[str, Any]]:
        """For each device with events or segments the `peak` of `analyze --format json`: how many bytes, when, and how
        exact. Keys are those of `devices`; of allocators that share one memory also their sum, "tensorflow:cpu +
        mklcpu", after the same PID."""
        labels = {(name, process): label for label, name, process in self._native.devices()}
        peaks: dict[str, dict[str, Any]] = {}
        analysis = self.analysis()
        for device in analysis["devices"]:
            peaks[labels[device["device"], device["process_index"]]] = device["peak"]
        for one in analysis.get("sums", ()):
            part = one["parts"][0]
            before = labels[part, one["process_index"]].removesuffix(part)
            peaks[before + one["device"]] = one["peak"]
        return peaks

    def stack(self, stack: int) -> list[str]:
        """The frames of a stack of `events` or `segments` as "file:line function", innermost first; empty for stack 0.
        Raises IndexError for an unknown number."""
        number = operator.index(stack)
        if not 0 <= number < 2**32:
            raise IndexError("no such stack")
        return list(self._native.stack(number))

    def analysis(self) -> dict[str, Any]:
        """The output of `analyze --format json` (schema gpumemprof.analysis/1), computed at the first call; each call
        returns its own dict."""
        if self._analysis is None:
            self._analysis = self._native.analysis()
        result: dict[str, Any] = json.loads(self._analysis)
        return result

    def whatif(
        self,
        settings: str | Sequence[str] = (),
        capacity: int | str | None = None,
        torch: str | None = None,
        *,
        device: str | None = None,
        sweep: bool = False,
        force: bool = False,
    ) -> dict[str, Any]:
        """The effect of other allocator settings on the same requests, as in `whatif --format json` (schema
        gpumemprof.whatif/1).

        `settings`: as in PYTORCH_CUDA_ALLOC_CONF, one simulation each. `capacity`: what the process can use of the
        device, in bytes or as "40GiB", or "none" for no limit (None: what it could use in a run that ran out of memory,
        otherwise "none"). `torch`: the release to simulate, such as "2.13" (None: the one that wrote the file).
        `device`: one of `devices` (None: the one that ran out of memory, otherwise the fullest). `sweep` also tries a
        set of promising settings. `force` predicts even if the replay of the recorded settings is not faithful. Raises
        ValueError for a recording without a CUDA allocator history, for settings that the release rejects or that
        cannot be simulated, and for a replay below 99 %.
        """
        tried = [settings] if isinstance(settings, str) else list(settings)
        room = "" if capacity is None else capacity if isinstance(capacity, str) else str(operator.index(capacity))
        text = self._native.what_if(tried, room, torch or "", device or "", sweep, force)
        result: dict[str, Any] = json.loads(text)
        return result

    def diff(self, other: Trace | str | os.PathLike[str], *, device: str | None = None) -> dict[str, Any]:
        """What `other`, a trace or the path of one, needs more than this trace, by line, as in `diff --format json` with
        this as A (schema gpumemprof.diff/1). `device`: "cuda:1", "PID/cuda:1" (None: each one's main device). A snapshot
        and a recording can be compared. Raises ValueError if a trace has no such device, and what load() raises."""
        if not isinstance(other, Trace):
            other = load(other)
        result: dict[str, Any] = json.loads(self._native.diff(other._native, device or ""))
        return result

    def __repr__(self) -> str:
        return f"<gpumemprof.Trace of {self.kind} {self.path!r}>"
