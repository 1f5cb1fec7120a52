"""Two recordings of one program, kept in two places, with sizes that differ by what the test knows."""

import json
import os
import re
import sys

import harness
import nested
import pytest
from carried_page import CarriedPage, has_no_network

sys.path.insert(0, str(harness.ROOT / "tests" / "exports"))
from programs_to_export import by_stack, nonzero, record_acme  # noqa: E402
from schema_test import validator  # noqa: E402

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    return [record_acme(folder / "one", 1_000_000, 3_000_000), record_acme(folder / "two" / "deeper", 1_500_000, 7_000_000)]


def diff(*argv):
    return harness.execute([harness.COMMAND, "diff", *argv])


@pytest.fixture(scope="module")
def document(recordings):
    return json.loads(diff(*recordings, "--format", "json").ok().stdout)


def test_it_follows_its_schema(document):
    check = validator("diff.schema.json")
    check.validate(document)
    assert not check.is_valid({**document, "schema": "gpumemprof.diff/2"})
    document["by_stack"][0]["change"], kept = "changed", document["by_stack"][0]["change"]
    assert not check.is_valid(document)
    document["by_stack"][0]["change"] = kept


def test_the_lines_grew_by_what_was_asked_for(document):
    """At the peak: one block kept, and the spike."""
    lines = {row["line"].rsplit("/", 1)[1].split(" ")[1]: row for row in document["by_line"] if row["line"]}
    assert (lines["acme_keep"]["a_bytes"], lines["acme_keep"]["b_bytes"]) == (1_000_000, 1_500_000)
    assert lines["acme_spike"]["delta_bytes"] == 4_000_000
    assert lines["acme_spike"]["change"] == "grew"
    assert lines["acme_spike"]["a_total_bytes"] == 3_000_000
    assert document["by_line"][0] == lines["acme_spike"], "the largest change comes first"
    # The interpreter's own tensors are the same in both: what is left is these two lines.
    assert document["peak"]["delta_bytes"] == 4_500_000


def test_both_sides_are_what_the_events_say(document, recordings):
    """Every stack of both recordings, counted again from the exported events."""
    wanted = {}
    for side, folder in zip("ab", recordings):
        events = [e for e in harness.events(folder) if e["device"] == "cpu"]
        naive, peak, _, total = by_stack(events)
        last = max(i for i, event in enumerate(events) if event["action"] == "alloc")
        before_exit, _, end, _ = by_stack(events[: last + 1])
        assert document[side]["peak_bytes"] == naive.peak_bytes
        assert document[side]["end_bytes"] == before_exit.end_bytes
        for key, counter in (("bytes", peak), ("end_bytes", end), ("total_bytes", total)):
            for stack, size in nonzero(counter).items():
                name = tuple(re.sub(r"^.*/(one|two/deeper)/", "", frame) for frame in stack)
                wanted.setdefault(name, {})[f"{side}_{key}"] = size
    found = {}
    for row in document["by_stack"]:
        name = tuple(re.sub(r"^.*/(one|two/deeper)/", "", frame) for frame in row["stack"])
        figures = {k: v for k, v in row.items() if re.fullmatch("[ab]_(end_|total_)?bytes", k) and v}
        if figures:
            found[name] = figures
    assert found == wanted


def test_text_and_page_come_from_the_same_figures(recordings, tmp_path):
    text = diff(*recordings).ok().stdout.decode()
    assert re.match(r"B's peak is 4\.29 MiB \(\d+\.\d %\) higher: ", text)
    assert "+3.81 MiB" in text.splitlines()[2] and "acme_spike" in text.splitlines()[2]
    page = tmp_path / "diff.html"
    diff(*recordings, "-o", page).ok()
    html = CarriedPage(page.read_text())
    assert "B's peak is 4.29 MiB (" in html.text and html.data["start"].startswith("tab=compare")
    header, tree = html.ask("compare", by="stack", device=0, file=0, other=1, other_device=0)
    document = json.loads(diff(*recordings, "--format", "json").ok().stdout)
    assert header["total_b"] - header["total_a"] == document["peak"]["delta_bytes"]
    for file in (0, 1):
        levels, curve = html.ask("levels", by="none", columns=2048, device=0, file=file, **{"from": 0, "to": html.files[file]["devices"][0]["events"] + 1})
        assert max(curve["total"]) == (header["total_a"], header["total_b"])[file]
    has_no_network(html)


def test_a_recording_has_no_difference_to_itself(recordings):
    document = json.loads(diff(recordings[0], recordings[0], "--format", "json").ok().stdout)
    assert document["peak"]["delta_bytes"] == document["end"]["delta_bytes"] == 0
    assert {row["change"] for row in document["by_stack"]} == {"same"}


def test_one_row_for_a_table_is_one_row_in_each(recordings):
    *_, stacks = diff(*recordings, "--rows", "1").ok().stdout.decode().partition("The stacks that changed most\n")
    assert "No difference." not in stacks and sum(line.lstrip().startswith(("+", "-")) for line in stacks.splitlines()[1:-1]) == 1, stacks


def test_what_cannot_be_compared_is_one_line_and_exit_2(recordings, tmp_path):
    for argv in ([recordings[0], tmp_path / "nothing"], [recordings[0], recordings[1], "--device", "cuda:3"],
                 [recordings[0], os.devnull]):
        done = diff(*argv)
        assert done.rc == 2 and done.stderr.decode().count("\n") == 1, done


def test_the_pair_of_snapshots_grew_by_attention_and_the_mlp():
    """One program at context 256 and at 512: in it, a block calls its attention in line 382 and its MLP in line 386."""
    folder = harness.ROOT.parent / "shared" / "snapshots"
    pair = [folder / "training_ctx256_torch210.pickle", folder / "training_ctx512_torch210.pickle"]
    if not all(path.exists() for path in pair):
        pytest.skip("no ../shared/snapshots here")
    document = json.loads(diff(*pair, "--format", "json").ok().stdout)
    validator("diff.schema.json").validate(document)
    grown = document["peak"]["delta_bytes"]
    assert grown > 3 * 2**30

    def through(place):
        return sum(r["delta_bytes"] for r in document["by_stack"] if any(f.endswith(place) for f in r["stack"]))

    attention, mlp = through("model.py:382 forward"), through("model.py:386 forward")
    assert attention > 2**30 and mlp > 0.5 * 2**30
    assert attention + mlp > 0.85 * grown
    text = diff(*pair).ok().stdout.decode()
    first = "\n".join(text.splitlines()[:5])
    assert "scaled_dot_product_attention" in first and "softmax" in first
    assert re.search(r"\+\d.* from .*model.py:399 forward", text), "the MLP's line, behind the Linear that all use"


FILLS = """
import resource, torch
kept = [torch.empty(1 << 20)]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
while True:
    kept.append(torch.zeros(16 << 20))
"""
BESIDE = """
import subprocess, sys, torch
kept = torch.empty(8 << 20, dtype=torch.uint8)
if len(sys.argv) > 1:
    child = f"import torch; kept = torch.empty({sys.argv[1]} << 20, dtype=torch.uint8)"
    subprocess.run([sys.executable, "-c", child], check=True)
"""


def test_a_run_that_failed_is_told_before_its_figures(tmp_path):
    a = nested.record(tmp_path / "a", [harness.PYTHON, "-c", BESIDE], ["-q"]).ok().folder
    b = harness.record(tmp_path / "b", [harness.PYTHON, "-c", FILLS], ["-q"]).folder
    lines = harness.execute([harness.COMMAND, "diff", a, b]).ok().stdout.decode().splitlines()
    assert lines[0].endswith(", until B failed") and lines[1].startswith("B: Out of memory: 64.0 MiB were refused at <string>:7 <module>")
    assert "until A failed" in harness.execute([harness.COMMAND, "diff", b, a]).ok().stdout.decode().splitlines()[0]


def test_memories_that_are_not_compared_are_named_where_they_differ(tmp_path):
    a = nested.record(tmp_path / "a", [harness.PYTHON, "-c", BESIDE], ["-q"]).ok().folder
    b = harness.record(tmp_path / "b", [harness.PYTHON, "-c", BESIDE, "3"], ["-q"]).ok().folder
    told = harness.execute([harness.COMMAND, "diff", a, b]).ok().stdout.decode()
    assert told.startswith("A and B have the same peak: 8.00 MiB on cpu\nAfter the last allocation ")
    assert "Note: Not compared: cpu of other processes, nothing (A) and 3.00 MiB (B).\n" in told
    assert "Not compared" not in harness.execute([harness.COMMAND, "diff", a, a]).ok().stdout.decode()


def test_a_worker_is_compared_with_a_worker(tmp_path):
    runs = [harness.record(tmp_path / size, [harness.PYTHON, "-c", BESIDE, size], ["-q"]).ok().folder for size in ("3", "20")]
    for pair, change in ((runs, "17.0 MiB (566.7 %) higher: 3.00 MiB -> 20.0 MiB"), (runs[::-1], "17.0 MiB (85.0 %) lower: 20.0 MiB -> 3.00 MiB")):
        told = harness.execute([harness.COMMAND, "diff", *pair]).ok().stdout.decode()
        assert told.startswith(f"B's peak is {change} on cpu of a worker process\n")
        assert "highest peak, 8.00 MiB on cpu, " in told and "it is that of the program's own process" in told
        assert "Note: Not compared: cpu of other processes" not in told, "8.00 MiB in both"


def test_a_leak_that_the_exit_frees_is_there_at_the_end(tmp_path):
    program = tmp_path / "leaks.py"
    program.write_text(
        "import sys, torch\n"
        "kept, net = [], torch.nn.Linear(64, 64)\n"
        "for step in range(20):\n"
        "    x = torch.ones(256, 64)\n"
        "    net(x).sum().backward()\n"
        "    net.zero_grad()\n"
        "    if len(sys.argv) > 1: kept.append(x)\n"
    )
    runs = [nested.record(tmp_path / name, [harness.PYTHON, program, *words]).ok().folder for name, words in (("a", []), ("b", ["leak"]))]
    document = json.loads(diff(*runs, "--format", "json").ok().stdout)
    more = 19 * 256 * 64 * 4  # the last x is live in both
    assert document["end"]["delta_bytes"] == more
    (line,) = [row for row in document["by_line"] if row["line"].endswith("leaks.py:4 <module>")]
    assert line["b_end_bytes"] - line["a_end_bytes"] == more
    for way in ("by_category", "by_module", "by_function", "by_stack"):
        assert sum(row["delta_end_bytes"] for row in document[way]) == more, way
    text = diff(*runs).ok().stdout.decode()
    assert re.search(r"^After the last allocation \+1\.19 MiB: ", text, re.M) and "\nBy module, at the peak\n" in text
    assert "\nBy line of your code, after the last allocation\n" in text
