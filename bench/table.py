"""The results as text, for the terminal and docs/benchmarks.md."""
VERDICTS = {True: "met", False: "**not met**", None: ""}

METHOD = """\
## How it was measured

- *Within a process*: recording is switched on and off in alternating blocks of steps. Pairs of
  blocks come in twos of opposite order; which order is first is random. The figure is the median
  ratio of the pairs, with the 95 % interval of a bootstrap of 10,000 resamples in brackets. For
  every tool, a few steps after each switch are not timed. Garbage is collected before a block, not
  during it.
- *Pairs of processes side by side*: one recorded and two plain processes start together and take
  turns in random order, one block of steps each; only one runs at a time. A pair's figure is the
  median ratio of its recorded blocks to the plain blocks of the same round. It includes the cost of
  the preloaded library while it records nothing; the figure within a process does not.
- A bound on a ratio is met when the interval's upper end is at most the bound + 0.005; a bound in
  ns when it is at most the bound.
- "Not met" with an interval that contains the bound means that the run could not decide. The
  control row below it shows the error of the method itself.
- *Control* rows measure the same with nothing switched, or plain against plain: what the method
  reports where there is no difference.
- The other tools run the same programs in the same run by the same method. They record different
  things: memray records every malloc and free of the process, without times; torch.profiler with
  profile_memory also records operators. "With its work at the end" adds the work that a tool does
  when it is switched off, spread over the recorded steps. In gpumemprof the `run` parent does this
  work on another core while the program runs.
- Disk: the size of all files in the folder, including meta.json, ÷ the events that the probe
  counted. "On disk" is what the files occupy in blocks; the bounds are on this figure.
- Unusual shapes: the least CPU time of several runs of whole commands, per event or per byte of
  the file, divided by the same for a plain file in the same run. A plain file has 1,000 live blocks
  (snapshots) or 10,000 (recordings), 600 stacks of 20 frames and one process. Every file has a
  million events. The figure is per byte where the unusual property makes the file larger (deep
  stacks, many files, a recording's distinct stacks, definitions per process), else per event. An
  export of stacks of 128 frames writes six times as much text as a plain one, and a comparison of
  two files reads both. Where no step scans everything, a ratio above 1 is due to memory that no
  longer fits in the processor's caches. The bare loop beside each row shows how large that effect
  is on this machine, by the same division: for each event, one look-up in a table of live blocks
  and one in a table of stacks, nothing else.
- Analysis: whole commands from start to exit, files in the page cache, one process. Peak memory is
  the process's maximum resident set, including mapped pages. The number of events in the answer is
  checked.
"""


def plain_text(row):
    verdict = {True: "met", False: "NOT MET", None: ""}[row.met]
    lines = [f"{row.what}", f"    {row.ours}   {row.bound}   {verdict}".rstrip()]
    lines += [f"    peer: {peer}" for peer in row.peers]
    return "\n".join(lines)


def markdown_rows(rows):
    for row in rows:
        peers = "; ".join(row.peers)
        yield f"| {row.what} | {row.ours} | {row.bound} | {VERDICTS[row.met]} | {peers} |"


def markdown(rows, facts, quiet, failures):
    lines = ["# Benchmarks", "",
             "`make bench` writes this page; all figures are of one run.", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += [f"- {line}" for line in quiet]
    lines += ["", "## Budgets", "", "| measurement | gpumemprof | bound | | other tools in the same run |",
              "| --- | --- | --- | --- | --- |"]
    lines += markdown_rows(r for r in rows if r.section == "budget")
    lines += ["", "## Other figures", "", "| measurement | figure |", "| --- | --- |"]
    lines += [f"| {r.what} | {r.ours} |" for r in rows if r.section == "more"]
    if failures:
        lines += ["", "## Not measured", ""] + [f"- {name}: {why}" for name, why in failures]
    lines += ["", METHOD.rstrip(), "", "## To reproduce", "", "```", "make",
              "make bench          # about 40 minutes; run nothing else on the machine",
              ".venv/bin/python bench/run.py --only steps,hook   # a part; prints, writes nothing",
              "```", ""]
    return "\n".join(lines)
