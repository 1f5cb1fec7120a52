"""`whatif` against running again with the settings, and an out-of-memory on purpose: explained, and what fits does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from work import MIB, Failed, Row, Work, counters_of, last_json, program, settings_env

STEPS = 40
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:8",
    "expandable_segments:True,roundup_power2_divisions:4",
)
FITS = "expandable_segments:True"
STEP_MIB = 16
CONTEXT_BYTES = 1 << 30  # of CUDA, and cuBLAS's handle


def measure(work: Work) -> list[Row]:
    folder, printed = work.record("lengths", program("gpu_lengths.py", STEPS), timeout_s=150)
    was = last_json(printed)
    replay = work.asks("whatif", folder)["replay"]
    rows = [
        Row(
            "addresses replayed exactly",
            f"{replay['matched']} of {replay['alloc_addresses']}",
            "all",
            replay["matched"] == replay["alloc_addresses"],
        )
    ]
    with ThreadPoolExecutor(5) as pool:
        rows += list(pool.map(lambda settings: confirmed(work, folder, settings), SETTINGS))
    try:
        rows += out_of_memory(work, folder, was)
    except Failed as failure:
        rows.append(Row("an out-of-memory on purpose", f"not measured: {failure}"))
    return rows


def what_if(work: Work, folder: Path, settings: str, *more: object) -> dict[str, Any]:
    return work.asks("whatif", folder, *(["--set", settings] if settings else []), *more)["results"][-1]


def confirmed(work: Work, folder: Path, settings: str) -> Row:
    title = f"peak reserved with {settings or 'the same settings'}: predicted, and when run"
    try:
        told = what_if(work, folder, settings)["peak_reserved_bytes"]
        with work.room.taken(told + CONTEXT_BYTES):
            is_ = counters_of(work.run(program("gpu_lengths.py", STEPS), env=settings_env(settings)))
    except Failed as failure:
        return Row(title, f"not measured: {failure}")
    retries, reserved = is_["retries"], is_["reserved_bytes"]
    if retries > 0:
        return Row(title, f"not comparable: {retries} times the GPU had no room, and PyTorch gave back what it had cached")
    return Row(
        title,
        f"{told / MIB:.0f} and {reserved / MIB:.0f} MiB ({100 * (told - reserved) / reserved:+.2f} %)",
        "equal",
        told == reserved,
    )


def out_of_memory(work: Work, folder: Path, was: dict[str, int]) -> list[Row]:
    """The most that PyTorch's defaults do not fit into and other settings do, by the replay; then for real."""
    low, high = was["allocated_bytes"] // MIB, was["reserved_bytes"] // MIB
    limit = 0
    for mib in range(high - high % STEP_MIB, low, -STEP_MIB):
        if what_if(work, folder, "", "--capacity", f"{mib}MiB")["num_ooms"]:
            limit = mib
            break
    if not limit:
        return [
            Row(
                "an out-of-memory on purpose",
                f"not measured: the defaults fit in {low} MiB, the peak of what is allocated",
            )
        ]
    fits = what_if(work, folder, FITS, "--capacity", f"{limit}MiB")["num_ooms"] == 0
    words = program("gpu_lengths.py", STEPS, limit)
    dead = work.recording("dead")
    died = last_json(work.run([work.command, "run", "-o", dead, "--", *words], name="run-dead", may_fail=True))
    end = work.asks("analyze", dead)["end"]
    for command in ("analyze", "advise", "whatif"):
        more = ["--sweep"] if command == "whatif" else []
        work.gpumemprof(command, dead, *more, name=f"dead-{command}", may_fail=True)
    work.run(
        ["sh", "-c", f"{work.command} explain-oom - < {work.out}/run-dead.txt"],
        name="dead-explain-oom",
        may_fail=True,
    )
    again = last_json(work.run(words, env=settings_env(FITS), may_fail=True))
    failed = {True: "runs out of memory", False: "fits"}
    return [
        Row(
            f"limited to {limit} MiB, PyTorch's defaults: predicted to run out of memory, and when run",
            failed["out_of_memory" in died],
            "as predicted",
            "out_of_memory" in died,
        ),
        Row(
            "what `analyze` says ended it",
            end["failure"] or "nothing",
            "the refused request",
            bool(end["refused"]),
            {"end": end},
        ),
        Row(
            f"the same with {FITS}: predicted that it {failed[not fits]}, and when run",
            failed["out_of_memory" in again],
            "as predicted",
            fits != ("out_of_memory" in again),
        ),
    ]
