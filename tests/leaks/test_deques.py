"""A deque with a maxlen that fills is no leak; what its maxlen does not limit is one."""

import json

import harness
import nested
import pytest

pytest.importorskip("torch")

STEPS, ROWS, COLUMNS = 60, 512, 256
BLOCK_BYTES = ROWS * COLUMNS * 4
PROGRAM = f"""
import sys
from collections import deque
import torch

class Logger:
    def __init__(self):
        self.history = []
    def __call__(self, module, arguments, output):
        self.history.append(output)

kept = {{"fills": deque(maxlen=100), "full": deque(maxlen={STEPS}), "lists": deque([[]], maxlen=9), "graphs": deque(maxlen=100)}}.get(sys.argv[1])
log = Logger()
net = torch.nn.Sequential(torch.nn.Linear({COLUMNS}, {COLUMNS}), torch.nn.ReLU(), torch.nn.Linear({COLUMNS}, 4))
if sys.argv[1] == "hook":
    net[0].register_forward_hook(log)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range({STEPS}):
    rows = torch.randn({ROWS}, {COLUMNS})
    loss = net(rows).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if sys.argv[1] in ("fills", "full"):
        kept.append((rows, loss.item()))
    elif sys.argv[1] == "graphs":
        kept.append(net(rows).mean())
    elif sys.argv[1] == "lists":
        kept[0].append(rows)
"""


def analyzed(tmp_path, kind):
    program = tmp_path / "keeps.py"
    program.write_text(PROGRAM)
    done = nested.record(tmp_path / "recording", [harness.PYTHON, program, kind], ["-q"], timeout=300).ok()
    return json.loads(harness.execute([harness.COMMAND, "analyze", done.folder, "--format", "json"]).ok().stdout)


@pytest.mark.alone  # the look that finds the deque has 0.3 s of CPU time, which neighbours on the same core lengthen
@pytest.mark.parametrize(("kind", "most_entries"), [("fills", 100), ("full", STEPS)])
def test_a_deque_that_fills_is_told_with_its_size_when_full(tmp_path, kind, most_entries):
    report = analyzed(tmp_path, kind)
    growing = {one["kind"]: one for one in report["findings"] if one["kind"] in ("leak", "steady_growth", "fills_to_limit")}
    assert {one["severity"] for one in growing.values()} == {"info"} and "leak" not in growing
    evidence = growing["fills_to_limit"]["evidence"]
    assert (evidence["entries"], evidence["most_entries"]) == (STEPS, most_entries)
    assert evidence["bytes_a_step"] == BLOCK_BYTES
    # The last rows are also what a variable stands for.
    assert (STEPS - 1) / STEPS * most_entries * BLOCK_BYTES <= evidence["full_bytes"] <= most_entries * BLOCK_BYTES
    growth = report["score"]["parts"]["growth"]
    assert growth["value"] is None and growth["reason"] == "a deque fills up to its maxlen"


def test_graphs_in_a_deque_are_a_leak_that_ends_when_it_is_full(tmp_path):
    (leak,) = (one for one in analyzed(tmp_path, "graphs")["findings"] if one["kind"] == "leak")
    assert leak["name"] == "loss_kept_with_graph"
    evidence = leak["evidence"]
    entry_bytes = 2 * BLOCK_BYTES  # the input of the first layer, and that of the last
    assert evidence["bytes_a_step"] == pytest.approx(entry_bytes, abs=64)
    assert (evidence["entries"], evidence["most_entries"]) == (STEPS, 100)
    assert evidence["full_bytes"] == pytest.approx(100 * entry_bytes, rel=0.02)
    assert evidence["steps_until_full"] == pytest.approx(100 - STEPS, abs=2)
    assert "steps_until_limit" not in evidence


def test_what_grows_inside_an_entry_is_a_leak(tmp_path):
    (leak,) = (one for one in analyzed(tmp_path, "lists")["findings"] if one["kind"] == "leak")
    assert leak["evidence"]["bytes_a_step"] == BLOCK_BYTES


def test_a_hook_that_is_an_object_is_called_by_its_attribute(tmp_path):
    (leak,) = (one for one in analyzed(tmp_path, "hook")["findings"] if one["kind"] == "leak")
    assert (leak["name"], leak["evidence"]["holder_name"]) == ("hook_stores", "Logger.history")


CAPACITY = f"""
import sys, torch

class Replay:
    def __init__(self, capacity):
        self.{{attribute}}, self.entries = capacity, []
    def add(self, entry):
        self.entries.append(entry)

replay = Replay(int(sys.argv[1]))
net = torch.nn.Linear({COLUMNS}, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range({STEPS}):
    rows = torch.randn({ROWS}, {COLUMNS})
    net(rows).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    replay.add(rows.clone())
"""


@pytest.mark.alone
@pytest.mark.parametrize(("attribute", "capacity", "kind"), [
    ("max_size", 100, "fills_to_limit"),
    ("max_size", 20, "leak"),  # it has more: nobody keeps that limit
    ("max_length", 100, "leak"),  # of a text, perhaps
])  # fmt: skip
def test_an_object_that_says_how_many_entries_it_may_have_fills_up_to_that(tmp_path, attribute, capacity, kind):
    program = tmp_path / "keeps.py"
    program.write_text(CAPACITY.replace("{attribute}", attribute))
    done = nested.record(tmp_path / "recording", [harness.PYTHON, program, capacity], ["-q", "--explain-leaks"], timeout=300).ok()
    report = harness.analysis(done.folder)
    (one,) = (one for one in report["findings"] if one["kind"] in ("leak", "fills_to_limit"))
    assert one["kind"] == kind
    assert one["evidence"]["bytes_a_step"] == BLOCK_BYTES
    assert one["evidence"]["holder"] == "Replay.entries, by replay in <module> (keeps.py)"
    if kind == "fills_to_limit":
        evidence = one["evidence"]
        assert (evidence["entries"], evidence["most_entries"], evidence["entries_limit"]) == (STEPS, capacity, "Replay.max_size")
        assert evidence["full_bytes"] == pytest.approx(capacity * BLOCK_BYTES, rel=0.02)
        assert one["severity"] == "info" and "limit_bytes" not in evidence
