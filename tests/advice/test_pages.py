"""The figures of the pages on practices are those of their programs."""

import subprocess
import sys

import harness
import pytest

pytest.importorskip("torch")


@pytest.mark.slow
def test_every_figure_is_that_of_the_program():
    done = subprocess.run(
        [sys.executable, harness.ROOT / "scripts" / "practices", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_page_has_its_program_and_figures():
    programs = (harness.ROOT / "examples" / "practices" / "practices.py").read_text()
    for page in (harness.ROOT / "docs" / "practices").glob("*.md"):
        if page.stem == "index":
            continue
        assert f"def {page.stem.replace('-', '_')}(better):" in programs, page
        assert "| saved |" in page.read_text(), page
