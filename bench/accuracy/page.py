"""The results as docs/accuracy.md, and as a summary for the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from figures import Errors, Largest, errors, fit_constant, fit_spread, largest_batches, quantile, trace_seconds
from rows import Row, is_for_fitting


_CAVEAT = (
    "Workspace sizes (`src/estimate/library_table.h`) come from an earlier trial on a part of the same table, whose models",
    "may be in either half. The errors below are therefore not entirely those of unseen models.",
)


@dataclass
class Report:
    """`traces`: the folder of the traces that the models were predicted from."""

    models: dict[str, list[Row]]
    all_models: int
    failed: dict[str, str]
    constant_mib: float
    spread: tuple[float, float]
    traces: Path

    def subset(self) -> str:
        done = len(self.models) + len(self.failed)
        if done == self.all_models:
            return f"all {self.all_models} models of the table"
        return f"{done} of the table's {self.all_models} models: the first of a fixed order by hash"

    def text(self) -> str:
        return "\n".join([f"Accuracy of predicted device peaks, {self.subset()}", "", *self.summary()])

    def summary(self) -> list[str]:
        share = len(self.failed) / max(1, len(self.models) + len(self.failed))
        fitting, reporting = (
            {name: rows for name, rows in self.models.items() if is_for_fitting(name) == half} for half in (True, False)
        )
        trusted = [row for rows in fitting.values() for row in rows if row.trusted]
        reported = [row for rows in reporting.values() for row in rows]
        lines = [
            ("all rows, including runs that died", errors(reported, self.constant_mib, capped=True)),
            ("runs that did not die", errors([row for row in reported if row.lived], self.constant_mib)),
            ("trusted rows", errors([row for row in reported if row.trusted], self.constant_mib)),
        ]
        fitted_mib = fit_constant(trusted)
        low, high = fit_spread(trusted, fitted_mib)
        of_clock, of_cpu = trace_seconds(self.traces, list(self.models))
        processor = f"{quantile(of_cpu, 0.5):.1f} s of CPU time, p90 {quantile(of_cpu, 0.9):.1f} s"
        clock = f"{quantile(of_clock, 0.5):.1f} s and {quantile(of_clock, 0.9):.1f} s"
        return [
            f"Fitted on {len(fitting)} models ({len(trusted)} trusted rows), reported on the other {len(reporting)}.",
            *_CAVEAT,
            "",
            "| reported rows | rows | median error | p90 | too low by more than 0 / 5 / 10 % | net of the constant |",
            "|---|---:|---:|---:|---:|---:|",
            *(line(name, found) for name, found in lines),
            "",
            "- Net of the constant: median and p90 of the error relative to the part above the constant.",
            f"- Constant (context, handles): {self.constant_mib:.0f} MiB built in; fitted in this run: {fitted_mib} MiB.",
            f"- Middle 90 % of measured ÷ predicted, on the fitting half: {low:.3f} to {high:.3f}; "
            f"built in: {self.spread[0]:.3f} to {self.spread[1]:.3f}.",
            largest_line("expected figure", largest_batches(reporting, 1)),
            largest_line("upper end of the interval", largest_batches(reporting, 2)),
            f"- Time per model (built twice, traced at two batches, libraries imported): median {processor}; "
            f"wall time, on a busy machine, {clock}.",
            f"- Failures: {len(self.failed)} models ({100 * share:.1f} %).",
        ]


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

`make accuracy` writes this page ({subset}). The predictions are those of `gpumemprof estimate --model timm:NAME --optimizer
momentum`: two traces without a GPU at batches 2 and 4, merged and simulated at the batch of the row. The measured values
are peaks of `nvidia-smi` on a 40 GB A100, from a public table of training runs (itu-rad/GPUMemNet, arXiv 2602.17817).
That table is not part of this repository, so this page shows only the errors.

"""

_RULES = """
## Which rows count

The public table has a figure for each model at batches 8 to 128, even where the run died. The predictions play no part
in these rules:

- A run counts as died if its row has 37,000 MiB or more, or no more than the row of the next smaller batch. So do all
  larger batches of that model.
- A row is trusted if its run did not die, it lies within 25 % of the model's own line (Theil-Sen), and the model's rows
  neither rise by more than a factor of 2.3 per doubled batch nor stop rising far below the device's memory. At least
  three runs of the model must have finished, because two rows always lie on a line.
- In the first line of the table above, a prediction above the device's memory counts as the device's memory.
- The largest batch that fits is that of the last run that did not die. A row on the nearly full device also counts as
  fitting if it lies within 5 % of the line and the line lies below the memory. A model for which neither applies is left
  out.

The constant, the interval and the rule that convolutions request their workspace at each call were fitted on the fitting
half. A hash of its name decides the half of each model.

## All rows

(predicted − measured) ÷ measured in percent, by batch. In parentheses: a row that is not trusted. —: the run died.
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
