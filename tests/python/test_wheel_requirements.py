"""What a wheel of `make wheel` says that its extras need, as installers read it. Old ones end at what they cannot read."""

import sys
from email import message_from_bytes

import harness
import pytest

requirements = pytest.importorskip("packaging.requirements")
tomllib = pytest.importorskip("tomllib")


@pytest.fixture(scope="module")
def needs():
    sys.path.insert(0, str(harness.ROOT / "scripts"))
    import assemble_wheel

    project = tomllib.loads((harness.ROOT / "pyproject.toml").read_text())["project"]
    return message_from_bytes(assemble_wheel.metadata(project, "1.0")).get_all("Requires-Dist")


def needed(needs, extra, python):
    environment = {"extra": extra, "python_version": python}
    read = [requirements.Requirement(need) for need in needs]
    return {one.name for one in read if one.marker.evaluate(environment)}


@pytest.mark.parametrize("extra, python, names", [
    ("runs", "3.9", {"duckdb", "pyarrow"}), ("mcp", "3.9", set()), ("mcp", "3.12", {"mcp"}), ("", "3.12", set()),
])  # fmt: skip
def test_an_extra_needs_its_own_and_by_its_own_condition(needs, extra, python, names):
    assert needed(needs, extra, python) == names
