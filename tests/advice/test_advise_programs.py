"""`advise -- COMMAND`: a change is made in a run of its own, and its saving is the difference of two exact peaks."""

import json
import os
import sys
from pathlib import Path

import harness
import jsonschema
import nested
import pytest

pytest.importorskip("torch")

PROGRAMS = Path(__file__).parent / "programs"
SCHEMA = harness.ROOT / "docs" / "schemas" / "advice.schema.json"
MIB = 1 << 20


def advise(*words, **popen):
    env = dict(os.environ, OMP_NUM_THREADS="1")
    return harness.execute([harness.COMMAND, "advise", *words], timeout=180, env=env, **popen)


def report_of(name, *options):
    done = advise("--format", "json", *options, "--", sys.executable, PROGRAMS / f"{name}.py").ok()
    report = json.loads(done.stdout)
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema)
    return report


def test_dropped_gradients_are_measured():
    """Four gradients of 768 × 768 with biases are gone at the peak of a step; the first that backward makes by then,
    or what the same moment holds in its place, is what they do not save."""
    (first,) = report_of("wren", "--steps", "4")["advice"]
    assert (first["kind"], first["basis"]) == ("gradients_kept", "measured")
    assert 7 * MIB < first["bytes"] <= 4 * (768 * 768 + 768) * 4
    assert first["step_ns"] > 0 and first["changed_step_ns"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [("heron", "checkpointing", 6 * MIB), ("crane", "optimizer_temporaries", 3 * MIB), ("stork", "prefetch", 2 * MIB)],
)
def test_what_else_can_be_changed_from_outside_is_measured(name, kind, least):
    first = report_of(name)["advice"][0]
    assert (first["kind"], first["basis"]) == (kind, "measured")
    assert least <= first["bytes"] < first["peak_bytes"]


@pytest.mark.slow
def test_without_measuring_the_program_runs_once(tmp_path):
    program = tmp_path / "once.py"
    runs = tmp_path / "runs"
    program.write_text(f"open({str(runs)!r}, 'a').write('x')\n" + (PROGRAMS / "wren.py").read_text())
    done = advise("--no-measuring", "--format", "json", "--", sys.executable, program).ok()
    (first,) = json.loads(done.stdout)["advice"]
    assert first["basis"] == "simulated" and first["step_ns"] is None
    assert runs.read_text() == "x"


def test_what_the_program_prints_is_not_the_advice():
    done = advise("--", sys.executable, "-c", "print('of the program'); import torch; torch.ones(9)").ok()
    assert done.stdout.startswith(b"No suggestions") and b"of the program" in done.stderr


def test_a_program_that_fails_before_anything_is_recorded_is_an_error():
    done = advise("--", "sh", "-c", "exit 7")
    assert done.rc == 2 and b"the program ended with exit code 7" in done.stderr and not done.stdout


def test_a_program_that_allocates_nothing_is_said_to_have_recorded_nothing():
    done = advise("--no-measuring", "--", "true")
    assert (done.rc, done.stdout) == (2, b"")
    assert done.stderr == b"gpumemprof: the program recorded nothing: gpumemprof run -- COMMAND says why\n"


def test_a_program_that_runs_out_of_memory_is_advised_on():
    """Two steps of the program whose gradients stay; then more is asked for than there is."""
    report = report_of("nightjar")
    assert report["failure"] == "the program ended with exit code 1"
    (first,) = [one for one in report["advice"] if one["kind"] == "gradients_kept"]
    assert first["basis"] == "simulated" and 7 * MIB < first["bytes"] <= 4 * (768 * 768 + 768) * 4
    assert first["step_ns"] is None


def test_a_change_that_is_never_made_is_not_measured():
    """The list of blocks has another name in the run with the change, so that there is nothing to checkpoint."""
    (blocks,) = [one for one in report_of("shrike")["advice"] if one["kind"] == "checkpointing"]
    assert blocks["basis"] == "simulated" and blocks["bytes"] > 0
    assert blocks["not_measured"] == "the run ended before the change applied"


@pytest.mark.slow
def test_a_change_that_saves_nothing_is_shown_as_measured():
    """Its run with the change allocates what the gradients were, and more."""
    program = PROGRAMS / "siskin.py"
    done = advise("--", sys.executable, program).ok()
    assert done.stdout.startswith(b"No suggestions.\n  gradients_kept         0 B")
    assert b"Saves nothing: the peak was " in done.stdout and b"measured in a second run with the change" in done.stdout


def test_what_is_no_recording_is_an_error(tmp_path):
    (tmp_path / "file.gmp").write_bytes(b"\0" * 4096)
    done = advise(tmp_path / "file.gmp")
    assert done.rc == 2 and done.stderr.count(b"\n") == 1
    assert advise(tmp_path / "nothing").rc == 2
    assert advise().rc == 2


def test_a_change_that_is_not_known_fails_the_run(tmp_path):
    """It would be measured as a change, and was none."""
    env = dict(os.environ, GPUMEMPROF_TRY="nothing")
    done = harness.record(tmp_path / "r", [sys.executable, "-c", "import torch"], ["-q"], env=env)
    assert done.rc == 1 and b"the change cannot be tried" in done.stderr


@pytest.mark.slow
def test_analyze_says_the_same(tmp_path):
    program = PROGRAMS / "gull.py"
    nested.record(tmp_path / "r", [sys.executable, program], ["-q"]).ok()
    written = tmp_path / "report.md"
    done = harness.execute([harness.COMMAND, "analyze", tmp_path / "r", "--optimize", "--report", written]).ok()
    assert b"\n1 suggestion\n  checkpoint_file_kept" in done.stdout
    assert "- **checkpoint_file_kept**, 6.01 MiB" in written.read_text()
