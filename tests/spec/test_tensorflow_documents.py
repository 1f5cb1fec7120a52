"""The guide's Python examples for TensorFlow run as written and print true figures, recorded and not."""

import re
from pathlib import Path

import documents
import nested
import pytest
import with_tensorflow

HERE = Path(__file__).parent
LINES = {247: "basic usage", 279: "memory growth", 308: "real example", 494: "profile_model", 759: "quick start"}

if reason := documents.missing():
    pytest.skip(reason, allow_module_level=True)


@pytest.mark.parametrize("line", LINES, ids=LINES.values())
def test_runs_as_written_and_its_figures_are_exact_under_the_recorder(tmp_path, line):
    run(line, "exact", tmp_path, tmp_path / "recording")


@pytest.mark.parametrize("line", LINES, ids=LINES.values())
def test_runs_as_written_without_a_recorder(tmp_path, line):
    run(line, "host", tmp_path, None)


def run(line, basis, folder, recording):
    python = with_tensorflow.python(*(["matplotlib"] if line == 308 else []))
    program = [python, HERE / "run_tensorflow_block.py", str(line), basis]
    popen = dict(cwd=folder, timeout=240, env=with_tensorflow.environment(), imports=("tensorflow",))
    done = nested.record(recording, program, **popen) if recording else nested.execute(program, **popen)
    done.ok()


def test_every_block_that_is_for_tensorflow_runs_here():
    blocks = documents.guide_blocks("python")
    assert {line for line, block in blocks.items() if re.search(r"tensorflow|tfmemprof", block.text)} <= set(LINES)
    assert set(LINES) <= set(blocks)
