"""The scripts of deploy/github-action, as a runner starts them; `gh` is a stand-in that keeps what it was asked."""

import os
import re

import harness
import pytest

yaml = pytest.importorskip("yaml")
ACTION = harness.ROOT / "deploy" / "github-action"
GH = """#!/bin/sh
echo "$*" >>"$GH_LOG"
case "$*" in *--paginate*) echo "$GH_EARLIER" ;; esac
"""


@pytest.fixture
def runner(tmp_path, light):
    """runner(script, **environment) -> Finished; files of the runner lie in tmp_path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "bin" / "gpumemprof").symlink_to(harness.COMMAND)
    base = {
        **light.env, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_OUTPUT": str(tmp_path / "out"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_REPOSITORY": "a/b", "GH_LOG": str(tmp_path / "gh.log"), "GH_EARLIER": "",
        "BASELINE": "memory.json", "TOLERANCE": "1%", "GPUMEMPROF_PROBE": str(harness.ROOT / ".venv" / "lib" / "libgpumemprof_probe.so"),
        "PYTHONPATH": str(harness.PROGRAMS),
    }  # fmt: skip
    return lambda script, **env: harness.execute([ACTION / script], cwd=tmp_path, env={**base, **env})


def command(size):
    return f"{harness.PYTHON} -c 'import light; kept = light.Block({size})'"


def test_the_action_names_scripts_that_are_there_and_interpolates_nothing():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert os.access(ACTION / re.fullmatch(r"\$GITHUB_ACTION_PATH/(\S+)", step["run"])[1], os.X_OK)
    assert action["inputs"]["tolerance"]["default"] == "1%"


def test_growth_fails_the_job_and_is_its_summary(runner, tmp_path):
    make = tmp_path / "bin" / "make"
    make.write_text(f'#!/bin/sh\nexec gpumemprof gate --baseline memory.json --reason first -- {command(1_000_000)}\n')
    make.chmod(0o755)
    runner(make).ok()
    assert runner("gate.sh", COMMAND=command(1_010_000)).rc == 0
    done = runner("gate.sh", COMMAND=command(1_020_000))
    assert done.rc == 3 and "+2.00 %" in (tmp_path / "summary").read_text()
    outputs = dict(line.split("=", 1) for line in (tmp_path / "out").read_text().splitlines())
    assert set(outputs) == {"markdown", "junit", "benchmark"} and all(os.path.exists(path) for path in outputs.values())


def test_one_comment_is_written_and_replaced(runner, tmp_path):
    (tmp_path / "c.md").write_text("<!-- gpumemprof gate -->")
    env = {"PULL_REQUEST": "7", "MARKDOWN": str(tmp_path / "c.md")}
    runner("comment.sh", **env).ok()
    runner("comment.sh", GH_EARLIER="42", **env).ok()
    asked = (tmp_path / "gh.log").read_text().splitlines()
    assert asked[1] == f"api --silent --method POST repos/a/b/issues/7/comments -F body=@{tmp_path / 'c.md'}"
    assert asked[3] == f"api --silent --method PATCH repos/a/b/issues/comments/42 -F body=@{tmp_path / 'c.md'}"
