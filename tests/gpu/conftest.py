"""One table of what was found on this machine's GPU, and what was skipped and why: at the end of `make gpu-test`, and as
gpu-test.txt and gpu-test.json in the folder OUT where that is set, with all recordings in one archive."""

import json
import os
import shutil
from pathlib import Path

ROWS = []


def pytest_runtest_logreport(report):
    # What a fixture skips is told in its set-up; what failed there, too.
    if report.when != "call" and report.passed or report.when == "teardown" and not report.failed:
        return
    why = ""
    if report.skipped:
        why = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
    figures = {name: value for name, value in report.user_properties}
    ROWS.append({"test": report.nodeid.rsplit("::", 1)[-1], "outcome": report.outcome, "seconds": round(report.duration, 2),
                 "figures": figures, "why": why})  # fmt: skip


def table():
    lines = [f"{'outcome':8} {'seconds':>8}  test"]
    for row in ROWS:
        said = ", ".join(f"{name} {value}" for name, value in row["figures"].items()) or row["why"]
        lines.append(f"{row['outcome']:8} {row['seconds']:>8.2f}  {row['test']}{': ' + said if said else ''}")
    counts = {outcome: sum(row["outcome"] == outcome for row in ROWS) for outcome in ("passed", "failed", "skipped")}
    return "\n".join([*lines, ", ".join(f"{count} {outcome}" for outcome, count in counts.items())])


def pytest_terminal_summary(terminalreporter):
    if not ROWS:
        return
    terminalreporter.section("this machine's GPU")
    terminalreporter.write_line(table())
    if out := os.environ.get("OUT"):
        Path(out).mkdir(parents=True, exist_ok=True)
        (Path(out) / "gpu-test.txt").write_text(table() + "\n")
        (Path(out) / "gpu-test.json").write_text(json.dumps(ROWS, indent=1) + "\n")
        if (recordings := Path(out) / "recordings").is_dir():
            shutil.make_archive(str(recordings), "gztar", recordings)
