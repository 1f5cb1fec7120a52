"""The table, for the terminal and for docs/benchmarks.md."""
VERDICTS = {True: "met", False: "**not met**", None: ""}

METHOD = """\
## How it was measured

- *Within a process*: recording is switched on and off in alternating blocks of steps; pairs of
  blocks come in twos of opposite order, which of them is first being drawn by chance. The figure
  is the median of the pairs' ratios, with the 95 % interval of a bootstrap of 10,000 resamples in
  brackets. A few steps after every switch are not timed, for every tool alike. Garbage is
  collected before a block, not during it.
- *Pairs of processes side by side*: a recorded process and two plain ones are started together
  and do a block of steps each in turn, in an order drawn by chance; one works at a time. A pair's
  figure is the median of its blocks' ratios to either plain one's of the same round. The cost of
  the preloaded library while it records nothing is in this figure, not in the other.
- A bound on a ratio counts as met when the interval's upper end is within the bound + 0.005; a
  bound in ns when the interval's upper end is within it.
- "Not met" where the interval holds the bound means that this run could not tell: the row of the
  control below says how far the method itself is off.
- *Control* rows do the same with nothing switched, or plain against plain: they show what the
  method reports where there is no difference.
- Peers run the same programs in the same run by the same method. What they record differs: memray
  records every malloc and free of the process and has no time of each; torch.profiler with
  profile_memory records operators besides. "With its work at the end" adds what a tool does when
  it is switched off, spread over the steps that it had recorded. Ours is done meanwhile by the
  `run` parent on another core.
- Disk: every file of the folder, meta.json included, ÷ the events that the program's own probe
  had counted. "On disk" is what the files occupy (blocks), which is what the bounds are held to.
- Unusual shapes: the least CPU time of several runs of whole commands, ÷ events or bytes of the
  file, against the same of a plain file in the same run: 1,000 live blocks (snapshots) or 10,000
  (recordings), 600 stacks of 20 frames, one process. A million events each. By byte where the file
  grows with what is unusual (deep stacks, many files, stacks of their own of a recording, each
  process with its definitions), else by event. An export of stacks of 128 frames writes six times
  the text of a plain one, and a comparison of two files reads both. What is left above 1 where no
  step looks at all of anything is memory that no longer fits the processor's caches. How much that
  is on this machine tells the bare loop beside each row, by the same division: of each event one
  look-up in a table of live blocks and one in a table of stacks, and nothing else.
- Analysis: whole commands from start to exit, files in the page cache, one process; peak memory
  is the process's maximum resident set, mapped pages included. The number of events in the answer
  is checked.
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
             "Written by `make bench`; every figure comes from that one run.", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += [f"- {line}" for line in quiet]
    lines += ["", "## Budgets", "", "| what | ours | bound | | peers in the same run |",
              "| --- | --- | --- | --- | --- |"]
    lines += markdown_rows(r for r in rows if r.section == "budget")
    lines += ["", "## Besides", "", "| what | figure |", "| --- | --- |"]
    lines += [f"| {r.what} | {r.ours} |" for r in rows if r.section == "more"]
    if failures:
        lines += ["", "## Not measured", ""] + [f"- {name}: {why}" for name, why in failures]
    lines += ["", METHOD.rstrip(), "", "## To reproduce", "", "```", "make",
              "make bench          # about 40 minutes; the machine should do nothing else",
              ".venv/bin/python bench/run.py --only steps,hook   # a part, printed but not written",
              "```", ""]
    return "\n".join(lines)
