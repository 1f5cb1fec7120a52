"""One bug is one finding, however many lines its memory comes from. Sizes are arithmetic on the program's tensors."""
import re
import sys

import harness
import pytest

pytest.importorskip("torch")

PROGRAM = harness.ROOT / "tests" / "commands" / "programs" / "kept_lines.py"
LINE = {mark: number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1)
        for mark in re.findall(r"# (up|bend|down|batch|copy)\b", text)}  # fmt: skip
STEPS, FLOAT = 60, 4
# tanh keeps its result, which the layer after it keeps, too; a layer keeps its input. Two blocks of each.
BEND, DOWN, BATCH, COPY = 2 * 8 * 1024 * FLOAT, 2 * 8 * 256 * FLOAT, 8 * 256 * FLOAT, 64 * 8 * FLOAT


def leaks(tmp_path, *options):
    argv = [sys.executable, PROGRAM, STEPS]
    folder = harness.record(tmp_path / "recording", argv, options=options).ok().folder
    found = [f for f in harness.analysis(folder)["findings"] if f["kind"] == "leak"]
    text = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode()
    return found, text


def number(frame):
    return int(harness.FRAME.match(frame)["line"])


def lines(finding):
    return [(number(one["frame"]), one["bytes_a_step"], one["bytes"]) for one in finding["lines"]]


def test_what_one_list_holds_is_one_finding_and_another_lists_another(tmp_path):
    (graph, copies), text = leaks(tmp_path, "--explain-leaks")
    assert lines(graph) == [(LINE[mark], size, STEPS * size)
                            for mark, size in (("bend", BEND), ("down", DOWN), ("batch", BATCH))]  # fmt: skip
    whole = BEND + DOWN + BATCH
    assert (graph["bytes"], graph["evidence"]["bytes_a_step"]) == (STEPS * whole, whole)
    assert graph["evidence"]["holder_name"] == "outputs"
    # Of each step that had ended when the program was asked last: five blocks.
    steps, rest = divmod(graph["evidence"]["held_blocks"], 5)
    assert rest == 0 and STEPS // 2 <= steps <= STEPS
    assert graph["name"] == "outputs_kept_with_graph" and number(graph["stack"][0]) == LINE["bend"]
    assert graph["title"].startswith(f"kept_lines.py:{LINE['bend']} and 2 more lines keep 88.0 KiB more with every step")
    assert copies["evidence"]["holder_name"] == "copies" and "lines" not in copies
    # The sums that each clone is made from are given back, those of the last one after the last allocation.
    assert (number(copies["stack"][0]), copies["bytes"]) == (LINE["copy"], STEPS * COPY)
    assert f"Lines: kept_lines.py:{LINE['bend']} 64.0 KiB a step, kept_lines.py:{LINE['down']} 16.0 KiB" in text


def test_where_nobody_was_asked_lines_of_the_same_bug_are_one(tmp_path):
    found, _ = leaks(tmp_path)
    told = {number(f["stack"][0]): f for f in found}
    # The batch is what autograd saved for the graph.
    graph = told[LINE["bend"]]
    assert [line for line, _, _ in lines(graph)] == [LINE["bend"], LINE["down"], LINE["batch"]]
    assert graph["bytes"] == STEPS * (BEND + DOWN + BATCH) and LINE["batch"] not in told
