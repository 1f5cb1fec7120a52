"""A small view that is kept keeps the whole storage: told as that, with both sizes."""

import harness
import nested
import pytest

pytest.importorskip("torch")
KIB, MIB = 1 << 10, 1 << 20
STEPS = 40
PROGRAM = """
import torch, gpumemprof
kept = []
for step in range(40):
    made = {make}
    kept.append({part})
    gpumemprof.step()
"""


def leak_of(tmp_path, make, part, *options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(make=make, part=part))
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["--explain-leaks", *options]).ok().folder
    return [one for one in harness.analysis(folder)["findings"] if one["kind"] == "leak"], folder


@pytest.mark.parametrize(("make", "part", "whole_bytes", "shown_bytes"), [
    ("torch.ones(1024, 1024)", "made[-1]", 4 * MIB, 4 * KIB),
    ("torch.ones(512, 512)", "made.diagonal()", 1 * MIB, 2 * KIB),
    ("torch.ones(1024, 256)", "made[:, 0]", 1 * MIB, 4 * KIB),
    ("torch.ones(1024, 256)", "(made[0], made[1])", 1 * MIB, 2 * KIB),
])  # fmt: skip
def test_what_views_keep_is_told_with_what_they_show(tmp_path, make, part, whole_bytes, shown_bytes):
    (leak,), folder = leak_of(tmp_path, make, part)
    evidence = leak["evidence"]
    views = STEPS - 1  # the last one's tensor is still a variable
    assert (evidence["viewed_blocks"], evidence["viewed_bytes"], evidence["shown_bytes"]) == (views, views * whole_bytes, views * shown_bytes)
    assert leak["fix"].startswith("copy each view with clone() before it is kept; ")
    text = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode()
    assert f"39 storages of {whole_bytes // MIB}.00 MiB are kept by views that show {shown_bytes // KIB}.00 KiB of each\n" in text


@pytest.mark.parametrize(("make", "part"), [
    ("torch.ones(1024, 256)", "made"),
    ("torch.ones(1024, 256)", "made[:600]"),  # 600 of 1,024 rows: more than half
    ("torch.ones(1024, 256)", "(made[0], made)"),
    ("torch.ones(1024, 256)", "list(made)"),  # together all of it
    ("torch.ones(1024, 256, requires_grad=True) * 2", "made[0]"),  # its graph keeps as much
])  # fmt: skip
def test_what_is_kept_in_whole_is_no_view(tmp_path, make, part):
    (leak,), _ = leak_of(tmp_path, make, part)
    assert "viewed_blocks" not in leak["evidence"] and "clone" not in leak["fix"]


def test_a_clone_keeps_what_it_shows(tmp_path):
    leaks, _ = leak_of(tmp_path, "torch.ones(1024, 256)", "made[:, 0].clone()")
    assert [(one["evidence"]["bytes_a_step"], one["evidence"].get("viewed_blocks")) for one in leaks] == [(4 * KIB, None)]


def test_of_a_batch_a_view_is_told_as_a_view_too(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "kept, model = [], torch.nn.Linear(1024, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 1e-3)\n"
        "for step in range(40):\n"
        "    x = torch.randn(256, 1024)\n"
        "    model(x).sum().backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
        "    kept.append(x[0])\n"
    )
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["--explain-leaks"]).ok().folder
    (leak,) = [one for one in harness.analysis(folder)["findings"] if one["kind"] == "leak"]
    assert leak["evidence"]["viewed_bytes"] == 39 * MIB and leak["fix"].startswith("copy each view with clone() before it is kept; ")
