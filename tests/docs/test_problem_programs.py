"""The programs of the pages of the host's troubles: what is said of each is what its page shows, but for the figures."""

import re

import pytest

import harness
from pages import blocks
from troubles.judge import Missing, cgroup, own_shm

pytest.importorskip("torch")

# By page: options of `run`, the cgroup's limit in MiB, the exit code.
PAGES = {
    "checkpoint-staging": ([], None, 0),
    "compile-workers": ([], None, 0),
    "dev-shm-left-behind": ([], None, 0),
    "fork-copy-on-write": ([], None, 0),
    "killed-137-oomkilled": ([], 600, -9),
    "malloc-retention": (["--explain-leaks"], None, 0),
    "mapped-weights-are-copied": ([], None, 0),
    "page-cache-is-not-a-leak": ([], 400, 0),
}
QUICK = "checkpoint-staging"
_FIGURE = re.compile(r"\d[\d.]*( [KMGT]iB)?")


def unindented(text):
    return "\n".join(line.removeprefix("    ") for line in text.splitlines()) + "\n"


def shape(line):
    """A line without its figures, the space before it, and the folders of files."""
    return _FIGURE.sub("#", " ".join(word.rpartition("/")[2] or word for word in line.split()))


@pytest.mark.parametrize("page", [pytest.param(page, marks=() if page == QUICK else pytest.mark.slow) for page in PAGES])
def test_the_program_of_a_page_is_told_as_the_page_shows(page, tmp_path):
    options, limit_mib, code = PAGES[page]
    found = blocks(f"docs/problems/{page}.md")
    if page == "killed-137-oomkilled":  # its blocks are within a list
        text = (harness.ROOT / f"docs/problems/{page}.md").read_text()
        (program,), (shown,) = (re.findall(rf"^    ```{fence}\n(.*?)^    ```", text, re.M | re.S)
                                for fence in (r'py title="grows\.py"', r'text title="gpumemprof analyze killed"'))
        name, program, shown = "grows.py", unindented(program), unindented(shown)
    else:
        (block,) = (one for one in found if one.language in ("py", "python") and "title" in one.note)
        name, program = block.note.split('"')[1], block.text
        (shown,) = (one.text for one in found if one.note == 'title="gpumemprof analyze run"')
    (tmp_path / name).write_text(program)
    argv = harness.run_argv(tmp_path / "run", ["python", name], ["-q", *options])
    try:
        with cgroup(limit_mib) as group:
            if group:
                argv = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *argv]
            done = harness.execute([*own_shm(), *argv], cwd=tmp_path, timeout=120)
    except Missing as missing:
        pytest.skip(str(missing))
    assert done.rc == (code if code >= 0 else 128 - code), done.stderr[-600:].decode()
    told = harness.execute([harness.COMMAND, "analyze", "run"], cwd=tmp_path).ok().stdout.decode()
    lines = [shape(line) for line in told.splitlines()]
    for line in shown.splitlines():
        assert shape(line) in lines, told[:3000]
