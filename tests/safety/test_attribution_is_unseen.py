"""Naming modules, storages and steps changes nothing of the program: losses to the last bit, the operators that PyTorch's
profiler lists, graphs, their breaks and recompilations, what is registered, what a debugger sees, and what is alive."""

import os

import pytest

import harness
import nested

PROGRAM = harness.PROGRAMS / "unchanged.py"
STRICT = ["-W", "error"]
# PyTorch itself warns in the last two: of a gradient that its own tracing asks for, of its own old modules.
WHAT = {
    "plain": STRICT, "checkpointed": STRICT, "evaluated": STRICT, "compiled": STRICT, "explained": STRICT, "modes": STRICT,
    "watched": STRICT, "kept": STRICT, "registered": STRICT, "compiled_steps": [], "inductor": [],
}  # fmt: skip


@pytest.mark.parametrize("what", WHAT)
def test_a_program_prints_the_same_with_and_without_a_recorder(record, what):
    pytest.importorskip("torch")
    argv = [harness.PYTHON, *WHAT[what], PROGRAM, what]
    env = {**os.environ, "PYTHONWARNINGS": "error"} if WHAT[what] else None
    without = nested.execute([harness.PYTHON, PROGRAM, what], env=env, timeout=300).ok()
    with_us = record(argv, timeout=300).ok()
    assert with_us.stdout == without.stdout
    printed = with_us.printed()
    assert printed
    if what == "kept":
        assert [line["alive"] for line in printed[:-1]] == [0, 0, 0], printed
        assert printed[-1]["dead"] == [True, True]
    if what == "registered":
        assert not any(printed[0]["hooks"][name] for name in printed[0]["hooks"] if name.endswith("hooks")), printed[0]
        assert not any([*printed[0]["own"].values(), *printed[0]["optimizers"].values()])
        assert all(all(two) for two in printed[0]["tensors"])
    if what in ("plain", "checkpointed", "kept"):  # all this while the names did arrive
        frames = {line for event in harness.events(with_us.folder) for line in event.get("stack", [])[:3]}
        assert {"<torch module> blocks.0.first", "<torch module> blocks.2.second"} <= frames
