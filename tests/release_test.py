"""The version stands in one place, and what publishes a release fits the repository."""

import re
import shutil
import subprocess
import sys

import harness
import pytest

ROOT = harness.ROOT
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LISTS = (ROOT / "CMakeLists.txt").read_text()
VERSION = re.search(r"^project\(gpumemprof VERSION (\d+\.\d+\.\d+) ", LISTS, re.MULTILINE)[1]
DAY = re.search(r"^set\(GPUMEMPROF_RELEASED (\d{4}-\d\d-\d\d)\)$", LISTS, re.MULTILINE)[1]


def test_command_package_and_manual_have_the_version_of_cmakelists():
    import gpumemprof

    assert gpumemprof.__version__ == VERSION
    for tool in ("gpumemprof", "tfmemprof"):
        shown = subprocess.run([tool, "--version"], executable=harness.COMMAND, capture_output=True, text=True, timeout=30).stdout
        assert shown == f"{tool} {VERSION}\n"
        page = subprocess.run([tool, "manual"], executable=harness.COMMAND, capture_output=True, text=True, timeout=30).stdout
        assert page.startswith(f'.TH {tool.upper()} 1 {DAY} "{tool} {VERSION}"\n')


def test_nothing_else_states_a_version_of_its_own():
    for name in ("pyproject.toml", "web/package.json"):
        text = (ROOT / name).read_text()
        assert not re.search(r'^\s*"?version"?\s*[=:]\s*"\d', text, re.MULTILINE), name
    stated = [path for path in (ROOT / "python").rglob("*.py") if re.search(r'^__version__\s*=\s*"', path.read_text(), re.MULTILINE)]
    assert stated == []


def test_the_changelog_begins_with_the_version_or_with_what_comes_after_it():
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heads[: 2 if heads[0] == "Unreleased" else 1][-1] == f"{VERSION} ({DAY})"


def test_there_are_workflows_for_tests_wheels_docs_and_releases():
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "tests", "wheels"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_is_there(path):
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(path.read_text())["jobs"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = "\n".join(step.get("run", "") for job in jobs.values() for step in job.get("steps", []))
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)", lines)) <= targets
    for script in re.findall(r"\bscripts/[\w-]+", lines):
        assert (ROOT / script).exists(), script
    for job in jobs.values():
        assert "timeout-minutes" in job or "uses" in job
        assert "uses" not in job or (ROOT / job["uses"]).exists()


def test_actionlint_has_nothing_to_say():
    if shutil.which("actionlint") is None:
        pytest.skip("no actionlint here")
    done = subprocess.run(["actionlint", *WORKFLOWS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_a_release_whose_version_the_changelog_lacks_is_refused(tmp_path):
    for name in ("scripts", "CMakeLists.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    script = (ROOT / "scripts" / "release").read_text().replace('cd "$(dirname "$0")/.."', f'cd "{tmp_path}"')
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f'release: CHANGELOG.md has no "## {VERSION} ({DAY})"\n'


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the project's own scripts need tomllib")
def test_wheel_and_tarball_take_it_from_there(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import assemble_wheel

    assert assemble_wheel.project_version() == VERSION
