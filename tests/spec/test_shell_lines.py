"""The guide's shell blocks: every flag exists, and the script runs. Single commands run in tests/commands."""

import os
import re
import shlex
import subprocess

import documents
import harness
import pytest

if reason := documents.missing():
    pytest.skip(reason, allow_module_level=True)

SCRIPT = 600  # the guide's line
COMMANDS = 571
# What the other blocks do: the other framework's command, which tests/tensorflow runs, and installing from elsewhere,
# which this repository cannot or should not run.
NOT_RUN = {587: "tfmemprof", 715: "git clone", 722: "pip install", 728: "pip install", 981: "pip install"}

TRAIN = """
import time, torch
held = []
for _ in range(30):
    held.append(torch.ones(64, 1024))
    time.sleep(0.05)
"""


def our_lines():
    """Every call of gpumemprof in the guide, continued lines joined."""
    for block in documents.guide_blocks("bash").values():
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.startswith("gpumemprof "):
                yield line.removesuffix("&").strip()


def test_every_shell_block_is_known():
    blocks = documents.guide_blocks("bash")
    assert set(blocks) == {SCRIPT, COMMANDS, *NOT_RUN}
    for line, what in NOT_RUN.items():
        assert what in blocks[line].text
        assert not re.search(r"^gpumemprof ", blocks[line].text, re.MULTILINE)


def test_every_flag_of_every_line_is_one_of_ours():
    lines = list(our_lines())
    assert len(lines) == 6
    for line in lines:
        _, command, *words = shlex.split(line)
        shown = harness.execute([harness.COMMAND, command, "--help"]).ok().stdout.decode()
        for word in words:
            if word.startswith("--"):
                assert re.search(rf"(?<![\w-]){word}(?![\w-])", shown), line


def test_the_script_runs_as_written_beside_a_training_run(tmp_path):
    pytest.importorskip("torch")
    tools, folder = tmp_path / "tools", tmp_path / "work"
    tools.mkdir(), folder.mkdir()
    (tools / "gpumemprof").symlink_to(harness.COMMAND)
    (tools / "python").write_text(f'#!/bin/sh\nexec "{harness.PYTHON}" "$@"\n')
    (tools / "python").chmod(0o755)
    (folder / "train_model.py").write_text(TRAIN)
    (folder / "script.sh").write_text(documents.guide_blocks("bash")[SCRIPT].text)
    env = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "script.sh"], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.rstrip().endswith("Training complete! Check memory_report.txt for analysis.")
    assert (folder / "memory_report.txt").stat().st_size > 0
    assert (folder / "training_plots" / "memory_timeline.html").stat().st_size > 0
    # The tracker was ended by `kill`, and its file is read at once: whole, from its first sample to its last event.
    import gpumemprof

    kinds = [event.event_type for event in gpumemprof.load_telemetry_events(folder / "training_memory.json")]
    assert (kinds[0], kinds[-1]) == ("start", "stop")
    assert kinds.count("sample") >= 10
