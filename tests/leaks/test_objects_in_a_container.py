"""Objects with several tensors, in one list or dict: one leak of the container, with the lines that made the tensors."""

import json

import harness
import nested
import pytest

pytest.importorskip("torch")

STEPS = 60
SIZES = {9: 4000, 8: 3000, 7: 2000, 6: 1000}  # floats, by line of the loop
PROGRAM = f"""
import torch
class Entry: pass
class Buffer: entries = None
def add(kept, step):
    a = torch.ones(1000)
    b = torch.ones(2000)
    c = torch.ones(3000)
    d = torch.ones(4000)
    KEEP
def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = MADE
    for step in range({STEPS}):
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        add(kept, step)
main()
"""
ATTRIBUTES = "e = Entry(); e.a, e.b, e.c, e.d = a, b, c, d; "


def leaks(tmp_path, made, keep):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("MADE", made).replace("KEEP", keep))
    done = nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q", "--explain-leaks"]).ok()
    report = json.loads(harness.execute([harness.COMMAND, "analyze", done.folder, "--format", "json"]).ok().stdout)
    assert "steady_growth" not in {one["kind"] for one in report["findings"]}, "its lines are told"
    return [one for one in report["findings"] if one["kind"] == "leak"]


@pytest.mark.parametrize(("made", "keep", "holder"), [
    ("[]", ATTRIBUTES + "kept.append(e)", "kept in main (program.py)"),
    ("{}", ATTRIBUTES + "kept[step] = e", "kept in main (program.py)"),
    ("Buffer()", ATTRIBUTES + "kept.entries = kept.entries or []; kept.entries.append(e)",
     "Buffer.entries, by kept in main (program.py)"),
])  # fmt: skip
def test_four_attributes_of_the_entries_are_one_leak(tmp_path, made, keep, holder):
    (leak,) = leaks(tmp_path, made, keep)
    evidence = leak["evidence"]
    assert (evidence["holder"], evidence["holder_name"]) == (holder, holder.partition(",")[0].partition(" ")[0])
    assert evidence["bytes_a_step"] == 4 * sum(SIZES.values()) and evidence["survivors_a_step"] == 4
    assert leak["bytes"] == 4 * sum(SIZES.values()) * STEPS
    lines = {int(one["frame"].rpartition(":")[2].split()[0]): (one["bytes"], one["bytes_a_step"]) for one in leak["lines"]}
    assert lines == {line: (4 * size * STEPS, 4 * size) for line, size in SIZES.items()}


def test_two_lists_of_one_object_are_two_leaks(tmp_path):
    keep = "kept.a = getattr(kept, 'a', []); kept.a.append(a); kept.b = getattr(kept, 'b', []); kept.b.append(b)"
    found = leaks(tmp_path, "Buffer()", keep)
    assert {one["evidence"]["holder_name"] for one in found} == {"Buffer.a", "Buffer.b"}
