"""The tables of a lake, column by column: what writers make, readers check and docs/lake.md explains."""

from __future__ import annotations

from typing import NamedTuple

NAME = "gpumemprof.lake"
VERSION = 1

NUMBER, TEXT, LIST, TRUTH, REAL = "BIGINT", "VARCHAR", "VARCHAR[]", "BOOLEAN", "DOUBLE"


class Column(NamedTuple):
    name: str
    type: str
    meaning: str
    is_added: bool = False  # within the version: NULL in files that were written before


def _columns(*rows: tuple[str, str, str] | tuple[str, str, str, bool]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


_RUN = ("run", TEXT, "name of the run: that of its folder in the lake")
_MEMORY = ("memory", NUMBER, "number of the memory in its run: see `ranks`")

TABLES: dict[str, tuple[Column, ...]] = {
    "runs": _columns(
        _RUN,
        ("schema", TEXT, "`gpumemprof.lake`"),
        ("schema_version", NUMBER, "1"),
        ("identity", TEXT, "the same for the same run, wherever its files lie"),
        ("source_path", TEXT, "the recording or snapshot, as it was named"),
        ("source_kind", TEXT, "`recording`, `pytorch_snapshot`, …, as in `analyze --format json`"),
        ("source_bytes", NUMBER, "size of its files"),
        ("writer", TEXT, "program that wrote the files; NULL: they do not say"),
        ("gpumemprof_version", TEXT, "gpumemprof version that wrote these tables"),
        ("events", NUMBER, "events of all memories"),
        ("is_complete", TRUTH, "no event is missing"),
        ("lost_events", NUMBER, "events known to be missing"),
        ("lost", TEXT, "what is missing, as a sentence; NULL: nothing"),
        ("score", REAL, "0 to 10, as in `analyze`; NULL: none"),
    ),
    "ranks": _columns(
        _RUN, _MEMORY,
        ("device", TEXT, "`cuda:0`, `cpu`, …"),
        ("backend", TEXT, "`CUDA`, `CPU`, …"),
        ("layer", TEXT, "who hands the memory out: `framework`, `driver`, …; layers contain each other and are never added up"),
        ("size_basis", TEXT, "`requested`: sizes are as asked for; `allocated`: as the allocator rounded them"),
        ("is_main", TRUTH, "true for the memory whose peak `analyze` reports first, and for its parts"),
        ("is_exact", TRUTH, "nothing is missing that its figures could depend on"),
        ("rank", NUMBER, "`RANK` of the process; NULL: it had none"),
        ("host", TEXT, "host of the process"),
        ("pid", NUMBER, "PID of the process; a snapshot does not name it"),
        ("command", TEXT, "command line of the process, cut at 1 KiB"),
        ("python_version", TEXT, "Python version of the process"),
        ("events", NUMBER, "events of this memory"),
        ("intervals", NUMBER, "rows in `intervals`"),
        ("before_bytes", NUMBER, "live before the first event"),
        ("peak_bytes", NUMBER, "the most that was live, as in `analyze`"),
        ("peak_event", NUMBER, "first event after which the peak was live, counted from 1; NULL: the peak was before the first remaining event"),
        ("peak_time_ns", NUMBER, "its time"),
        ("peak_reserved_bytes", NUMBER, "the most that the allocator held of the device"),
        ("end_bytes", NUMBER, "live after the last event, when the exit has freed what it frees"),
        ("start_time_ns", NUMBER, "when the recording began, on the clock of the events"),
        ("end_time_ns", NUMBER, "when its process, if it exited by itself, was last recorded, else when `run` saw that it had ended: its memory was gone then; NULL: nobody knows", True),
        ("wall_offset_ns", NUMBER, "add it to a time to get nanoseconds since 1970; NULL: unknown, or times count from 1970 already"),
    ),
    "intervals": _columns(
        _RUN, _MEMORY,
        ("interval", NUMBER, "number of the allocation in its memory, by birth"),
        ("birth_event", NUMBER, "event that allocated it; 0: live before the first event"),
        ("death_event", NUMBER, "event that freed it; NULL: live to the end"),
        ("birth_time_ns", NUMBER, "time of its birth"),
        ("death_time_ns", NUMBER, "time of its death"),
        ("address", NUMBER, "first byte"),
        ("size_bytes", NUMBER, "size, as `ranks.size_basis` says"),
        ("stack", NUMBER, "see `stacks`; 0: none recorded"),
        ("stream", NUMBER, "CUDA stream; 0: the default one"),
        ("thread", NUMBER, "TID of the thread that allocated"),
        ("category", TEXT, "its last category, as in `analyze`; `categories` has the earlier ones"),
        ("module", TEXT, "module of the model"),
        ("phase", TEXT, "the program's own phase, else forward, backward, …"),
        ("step", NUMBER, "the program's step in which it was allocated; NULL before the first end of a step"),
    ),
    "categories": _columns(
        _RUN, _MEMORY,
        ("interval", NUMBER, "the allocation"),
        ("from_event", NUMBER, "first event after which it had this category"),
        ("until_event", NUMBER, "event after which it had another category"),
        ("category", TEXT, "as in `intervals`"),
        ("module", TEXT, "as in `intervals`"),
        ("phase", TEXT, "as in `intervals`"),
    ),
    "stacks": _columns(
        _RUN,
        ("stack", NUMBER, "number of the stack in its run"),
        ("depth", NUMBER, "frames"),
        ("line", TEXT, "the line to name it by: the innermost of your own code, where it has one"),
        ("frames", LIST, "`file:line function`, outermost first"),
        ("folded", TEXT, "the frames as `export --to folded` writes them"),
    ),
    "samples": _columns(
        _RUN, _MEMORY,
        ("event", NUMBER, "from this event on, until the next row of the name"),
        ("time_ns", NUMBER, "its time"),
        ("name", TEXT, "`reserved`, `waiting_for_stream` (freed, but a stream still used it), `rounding` (what the allocator added)"),
        ("value_bytes", NUMBER, "the figure"),
    ),
    "steps": _columns(
        _RUN, _MEMORY,
        ("kind", TEXT, "`step`, `phase` of the program, `annotation` of a snapshot"),
        ("name", TEXT, "name of the phase or annotation"),
        ("step", NUMBER, "number of the step"),
        ("begin_event", NUMBER, "last event before it"),
        ("end_event", NUMBER, "last event in it; NULL: it did not end"),
        ("begin_time_ns", NUMBER, "when it began; NULL for the first step"),
        ("end_time_ns", NUMBER, "when it ended"),
    ),
    "slices": _columns(
        _RUN, _MEMORY,
        ("slice", NUMBER, "number of the slice: wall clock since 1970 ÷ `slice_ns`, rounded down; NULL: before the first event"),
        ("slice_ns", NUMBER, "length of the slices of this memory: a power of two, at most 65,536 slices"),
        ("net_bytes", NUMBER, "bytes held at the end of the slice minus those at its start; a slice without events has no row"),
        ("rise_bytes", NUMBER, "the most bytes held in the slice minus those at its start"),
    ),
    "findings": _columns(
        _RUN,
        ("finding", NUMBER, "number in its run, the most severe first"),
        ("kind", TEXT, "`leak`, `out_of_memory`, …, as in `analyze`"),
        ("name", TEXT, "which one of its kind"),
        ("severity", TEXT, "`info`, `warning`, `critical`"),
        ("title", TEXT, "the sentence"),
        ("size_bytes", NUMBER, "bytes that the finding concerns"),
        ("confidence", TEXT, "how certain the finding is"),
        ("device", TEXT, "the device"),
        ("fix", TEXT, "what to change"),
        ("frames", LIST, "its stack, outermost first"),
        ("evidence", TEXT, "figures, as a JSON object"),
    ),
}  # fmt: skip

# One file for each memory, so that a damaged one costs that memory alone.
BY_MEMORY = "intervals"
# Between the frames of a stack, as the core hands them over.
BETWEEN_FRAMES = "\x1f"


def file_name(table: str, memory: int) -> str:
    return f"{table}.{memory}.parquet" if table == BY_MEMORY else f"{table}.parquet"
