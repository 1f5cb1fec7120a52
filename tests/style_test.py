"""What every file of the repository keeps to; docs and comments say why."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 600
MAX_COLUMNS = 120  # clang-format keeps to 100; this leaves room for what it cannot break
CODE = {".cc", ".h", ".py", ".sh"}
TEXT = CODE | {".md", ".txt", ".cmake", ".json", ".yaml", ".yml", ".ini", ".toml", ".html", ".css", ".js", ""}
# A home folder or a build folder of somebody's machine is of no use to anybody else.
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(home|root|Users|work|workspace|mnt)/[A-Za-z.]\w*")
LONE_TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
CONFLICT = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)


def tracked():
    """Files that are, or would be, in the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    return [p for p in paths if p.is_file() and p.suffix in TEXT and "corpus" not in p.parts]


@pytest.fixture(scope="module")
def files():
    result = {}
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            result[path.relative_to(ROOT)] = data.decode("utf-8")
    assert len(result) > 20
    return result


def offenders(files, pattern, suffixes=TEXT):
    this = Path(__file__).relative_to(ROOT)
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(0)!r}"
        for path, text in files.items()
        if path.suffix in suffixes and path != this
        for match in pattern.finditer(text)
    ]


def test_code_files_are_small(files):
    long = {str(p): n for p, t in files.items() if p.suffix in CODE and (n := t.count("\n")) > MAX_LINES}
    assert not long


def test_code_lines_are_short(files):
    long = [
        f"{path}:{number}: {len(line)} columns"
        for path, text in files.items()
        if path.suffix in (".cc", ".h")
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    assert not long


def test_no_path_of_a_developers_machine(files):
    assert not offenders(files, MACHINE_PATH)


def test_a_todo_names_its_issue(files):
    assert not offenders(files, LONE_TODO)


def test_no_conflict_marker(files):
    assert not offenders(files, CONFLICT)


def test_text_ends_with_one_newline(files):
    wrong = [str(p) for p, t in files.items() if t and (not t.endswith("\n") or t.endswith("\n\n"))]
    assert not wrong


def test_no_trailing_space_and_no_tab_in_code(files):
    assert not offenders(files, re.compile(r"[ \t]+$|^\t", re.MULTILINE), CODE)


def test_headers_are_guarded(files):
    bare = [str(p) for p, t in files.items() if p.suffix == ".h" and "#pragma once" not in t
            and p.parts[0] != "include"]
    assert not bare


def test_no_module_of_the_tests_hides_a_package(files):
    """A test may put its folder first on the path: `import troubles` then is the file, and no longer tests/troubles."""
    packages = {path.parent.name for path in files if path.match("tests/*/__init__.py")}
    assert not [str(path) for path in files if path.parts[0] == "tests" and path.suffix == ".py" and path.stem in packages]


def test_our_own_text_is_plain(files):
    """Words that sell instead of telling."""
    selling = re.compile(r"\b(blazing(ly)?|seamless(ly)?|cutting-edge|revolutionary|game-chang\w+)\b", re.I)
    assert not offenders(files, selling)
