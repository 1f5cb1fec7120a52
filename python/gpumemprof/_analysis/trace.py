"""A snapshot of PyTorch's memory or a recording, opened for questions: `gpumemprof.load(path)`."""

from __future__ import annotations

import json
import operator
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .._core.native import native

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_SEGMENTS = "a recording has no segments of the GPU's allocator"


def load(path: str | os.PathLike[str]) -> Trace:
    """Opens a snapshot that `torch.cuda.memory._dump_snapshot()` wrote, a folder that `gpumemprof run` wrote, or one of
    its .gmp files; what it is, its content says. No code of the file is ever run.

    A snapshot is read at once and whole; of a recording, events are read when they are first asked for.
    FileNotFoundError where there is nothing, ValueError with the reader's one line (and the byte) for a file that is
    no such thing or damaged, OSError where it cannot be read.
    """
    return Trace(path)


class Events:
    """The events of a trace, oldest first: one NumPy array a column, all of one length.

    The arrays are read-only views of the reader's own memory, which lives as long as any of them. What the file does
    not say is None, with the reason in `Trace.unknown`. Reading a column needs NumPy; `len()` and Arrow do not.
    As Arrow data (`__arrow_c_stream__`) the same columns go to pyarrow, pandas, polars or DuckDB: there `action`,
    `device` and `stream` are dictionaries of their names and numbers, and each single unknown value is null.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return int(self._trace.event_count())

    @cached_property
    def time_ns(self) -> Any:
        """int64: of a snapshot since 1970, of a recording the machine's monotonic clock; None without times."""
        return self._column("time_ns")

    @cached_property
    def action(self) -> Any:
        """uint8: an index of `actions`."""
        return self._column("action")

    @cached_property
    def address(self) -> Any:
        """uint64: of the block or segment; 0 for `oom` and `snapshot`, which have none."""
        return self._column("address")

    @cached_property
    def size_bytes(self) -> Any:
        """uint64: what was asked for (GPU recordings: as the allocator rounded it), of the segment in `segment_…`, what
        was refused in `oom`. A free has the size of the block that it ends; 0 where that is not known."""
        return self._column("size_bytes")

    @cached_property
    def stack(self) -> Any:
        """uint32 for `Trace.stack()`; 0: no stack is known."""
        return self._column("stack")

    @cached_property
    def device(self) -> Any:
        """uint16: an index of `Trace.devices`."""
        return self._column("device")

    @cached_property
    def thread(self) -> Any:
        """uint32: an index of `Trace.threads`, 4294967295 where it is not known; None for snapshots."""
        return self._column("thread")

    @cached_property
    def stream(self) -> Any:
        """uint16: an index of `streams`; None where the file does not say."""
        return self._column("stream")

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """The names of actions by their number: "alloc", "free_requested", … as `export --to jsonl` writes them."""
        return tuple(self._trace.actions())

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """CUDA's streams as numbers, in the order in which they appear; 0 is the default stream."""
        return tuple(self._trace.streams())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """One record batch through the Arrow C stream interface; the columns are not copied. Another schema than its
        own is not made: `requested_schema` is passed over, as the interface allows."""
        return self._trace.arrow_stream()

    def _column(self, name: str) -> Any:
        try:
            import numpy as np  # noqa: F401: what the native module makes the array with
        except ImportError as error:
            raise ImportError(
                "NumPy is required for columns of events. Install it with `pip install 'gpumemprof[load]'`."
            ) from error
        return self._trace.column(name)


class Trace:
    """What `gpumemprof.load()` gives. The answers are those of the command, with the same names and units: each method
    says which. Every question may be asked from any thread; the long ones let others run meanwhile.
    """

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
        """All events, in time order where every device has times, else one device after the other."""
        return Events(self._native)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Their names by number: "cuda:0", "cpu"; "4711/cpu" where several processes have one of that name."""
        return tuple(label for label, _, _ in self._native.devices())

    @cached_property
    def threads(self) -> list[dict[str, Any]]:
        """By number: `tid`, `name`, and the PID of its `process`. Empty for snapshots."""
        return list(self._native.threads())

    @cached_property
    def segments(self) -> list[dict[str, Any]]:
        """What the allocator held from the driver in the end, by device and address.

        Each has `device`, `address`, `size_bytes`, `allocated_bytes`, `active_bytes`, `requested_bytes`, `stream`,
        `pool` ((0, 0) is the default one, and what files have that name none), `is_large`, `is_expandable`, `stack`
        and `blocks`: of each `address`, `size_bytes`, `requested_bytes` (of a free one: of its last user), `state`
        ("allocated", "pending_free", "free") and `stack`. Empty for recordings: `unknown["segments"]` says why.
        """
        return list(self._native.segments() or ())

    @cached_property
    def unknown(self) -> dict[str, str]:
        """Why something that others have is missing here: a column of `events` that is None, or `segments`."""
        reasons: dict[str, str] = dict(self._native.unknown())
        if self._native.segments() is None:
            reasons["segments"] = _NO_SEGMENTS
        return reasons

    @cached_property
    def lost(self) -> dict[str, Any]:
        """What was written, or should have been, and is not in `events`: `events`, `bytes`, the `reasons`, and
        `more_than_counted`, True where nobody knows how many more."""
        return dict(self._native.lost())

    @property
    def peak(self) -> dict[str, dict[str, Any]]:
        """Of each device that has events or segments the `peak` of `analyze --format json`: how many bytes, when, and
        how exactly it is known. Keys are those of `devices`."""
        labels = {(name, process): label for label, name, process in self._native.devices()}
        peaks: dict[str, dict[str, Any]] = {}
        for device in self.analysis()["devices"]:
            peaks[labels[device["device"], device["process_index"]]] = device["peak"]
        return peaks

    def stack(self, stack: int) -> list[str]:
        """The frames of a stack of `events` or `segments` as "file:line function", the allocating line first; none for
        stack 0. IndexError for a number that no stack has."""
        number = operator.index(stack)
        if not 0 <= number < 2**32:
            raise IndexError("no such stack")
        return list(self._native.stack(number))

    def analysis(self) -> dict[str, Any]:
        """All that `analyze --format json` says, schema gpumemprof.analysis/1: a dict of its own for each call, worked
        out on the first."""
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
        """What other allocator settings would have done with the same requests, as `whatif --format json` says it:
        schema gpumemprof.whatif/1.

        `settings`: as in PYTORCH_CUDA_ALLOC_CONF, several for one simulation each. `capacity`: what the process can
        have of the device, in bytes or as "40GiB", or "none": it never runs out (None: what it could have in a run
        that ran out of memory, else "none"). `torch`: the release whose rules to
        follow, such as "2.13" (None: the one that wrote the file). `device`: one of `devices` (None: the one that ran
        out of memory, else the one that holds most). `sweep` also tries the settings that are worth it; `force`
        predicts even where the replay of the recorded settings is not faithful. ValueError for a recording that did not
        follow a CUDA allocator, for settings that the release refuses or that cannot be simulated, and for a replay below 99 %.
        """
        tried = [settings] if isinstance(settings, str) else list(settings)
        room = "" if capacity is None else capacity if isinstance(capacity, str) else str(operator.index(capacity))
        text = self._native.what_if(tried, room, torch or "", device or "", sweep, force)
        result: dict[str, Any] = json.loads(text)
        return result

    def diff(self, other: Trace, *, device: str | None = None) -> dict[str, Any]:
        """What `other` needs more than this trace, and which lines, as `diff --format json` says it with this as A:
        schema gpumemprof.diff/1. `device`: "cuda:1", "PID/cuda:1" (None: each one's main device). A snapshot and a
        recording may be compared. ValueError where a trace has no such device.
        """
        result: dict[str, Any] = json.loads(self._native.diff(other._native, device or ""))
        return result

    def __repr__(self) -> str:
        return f"<gpumemprof.Trace of {self.kind} {self.path!r}>"
