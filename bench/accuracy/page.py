"""docs/accuracy.md, and the same in short on the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from figures import Errors, Largest
from rows import Row, is_for_fitting


_CAVEAT = (
    "How large workspaces are was not: that came from an earlier trial on a part of the same table, whose models may be",
    "in either half, so the errors below are not of models that nobody had looked at.",
)


@dataclass
class Report:
    models: dict[str, list[Row]]
    wanted: int
    all_models: int
    failed: dict[str, str]
    not_done: list[str]
    constant_mib: float
    spread: tuple[float, float]
    fitted_mib: int
    fitted_spread: tuple[float, float]
    fitting: tuple[int, int]
    reporting: int
    lines: list[tuple[str, Errors]]
    fitting_line: Errors
    largest: Largest
    largest_upper: Largest
    seconds: tuple[float, float, float, float]

    def subset(self) -> str:
        done = len(self.models) + len(self.failed)
        if done == self.all_models:
            return f"all {self.all_models} models of the table"
        return f"{done} of the table's {self.all_models} models: the first of a fixed order by hash"

    def text(self) -> str:
        return "\n".join([f"Accuracy of predicted device peaks, {self.subset()}", "", *self.summary()])

    def summary(self) -> list[str]:
        share = len(self.failed) / max(1, len(self.models) + len(self.failed))
        low, high = self.fitted_spread
        processor = f"{self.seconds[2]:.1f} s of the processor, p90 {self.seconds[3]:.1f} s"
        clock = f"{self.seconds[0]:.1f} s and {self.seconds[1]:.1f} s"
        models, rows = self.fitting
        table = [
            f"Fitted on {models} models ({rows} trusted rows), reported on the other {self.reporting}.",
            *_CAVEAT,
            "",
            "| reported rows | rows | median error | p90 | under by more than 0 / 5 / 10 % | net of the constant |",
            "|---|---:|---:|---:|---:|---:|",
            *(line(name, found) for name, found in self.lines),
            "",
            "- Net of the constant: median and p90 of the error over what is above the constant.",
            f"- Constant (context, handles): {self.constant_mib:.0f} MiB built in; fitted anew: {self.fitted_mib} MiB.",
            f"- Middle 90 % of measured against predicted, on the fitting half: {low:.3f} to {high:.3f}; "
            f"built in: {self.spread[0]:.3f} to {self.spread[1]:.3f}.",
            largest_line("expected figure", self.largest),
            largest_line("upper end of the interval", self.largest_upper),
            f"- Time a model (built twice, traced at two batches, libraries imported): median {processor}; "
            f"on the clock, on a machine with other work, {clock}.",
            f"- Failures: {len(self.failed)} models ({100 * share:.1f} %).",
        ]
        return table


def line(name: str, found: Errors) -> str:
    under = " / ".join(f"{100 * share:.0f}" for share in found.under)
    return (
        f"| {name} | {found.rows} | {100 * found.median:.2f} % | {100 * found.p90:.1f} % | {under} % | "
        f"{100 * found.net_median:.2f} % / {100 * found.net_p90:.1f} % |"
    )


def largest_line(judged_by: str, found: Largest) -> str:
    share = 100 * found.exact / max(1, found.models)
    return (
        f"- Largest batch of 8, 16, 32, 64, 128 that fits 40,536 MiB, by the {judged_by}: exact for {found.exact} of "
        f"{found.models} models ({share:.1f} %), too high for {found.too_high}, too low for {found.too_low}."
    )


_HEAD = """# Accuracy of predictions

Written by `make accuracy` ({subset}). Predictions are those of `gpumemprof estimate --model timm:NAME --optimizer
momentum`: two traces without a GPU at batches 2 and 4, merged, and simulated at the batch of the row. Measured are the
peaks of `nvidia-smi` on an A100 of 40 GB in a public table of training runs (itu-rad/GPUMemNet, arXiv 2602.17817),
which is not part of this repository, so this page has errors alone.

"""

_RULES = """
## What is a row

The table has a figure for each model at batches 8 to 128, also where a run died. A row is taken for a run that died
where it has 37,000 MiB or more, or no more than the row of the smaller batch; so are the rows after it. A row is
trusted where it is not, lies within 25 % of the model's own line (Theil and Sen), and the model does not rise by more
than 2.3 for a doubled batch or stop rising far below the device's memory; at least three rows of the model must have
lived, since two lie on a line whatever they are. Nothing that is predicted has a say in it. In the first line of the
table above a prediction above the device's memory counts as the device's memory. The largest batch is that of the
last row that did not die; a row on the nearly full device also counts as one that fitted where it is within 5 % of
the line and the line below the memory. Where neither can be told the model is left out.

Fitted on the fitting half are the constant and the interval, and that convolutions ask for their workspace at each
call. How large workspaces are (`src/estimate/library_table.h`) came from an earlier trial on a part of the same table,
whose models may be in either half. Which half a model belongs to is decided by a hash of its name.

## Every row

Predicted minus measured in percent of measured, by batch. In brackets: a row that is not trusted; —: the run died.
F: fitting half, R: reporting half.

| model | half | 8 | 16 | 32 | 64 | 128 |
|---|---|---:|---:|---:|---:|---:|
"""


def page(report: Report) -> str:
    text = _HEAD.format(subset=report.subset()) + "\n".join(report.summary()) + "\n" + _RULES
    for name in sorted(report.models):
        cells = [cell(row, report.constant_mib) for row in report.models[name]]
        text += f"| {name} | {'F' if is_for_fitting(name) else 'R'} | {' | '.join(cells)} |\n"
    if report.failed:
        text += "\n## Failures\n\n" + "".join(f"- {name}: {reason}\n" for name, reason in sorted(report.failed.items()))
    return text


def cell(row: Row, constant_mib: float) -> str:
    if not row.lived:
        return "—"
    error = 100 * (row.predicted_mib(constant_mib) - row.measured_mib) / row.measured_mib
    return f"{error:+.1f}" if row.trusted else f"({error:+.1f})"
