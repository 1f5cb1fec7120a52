"""The examples run, and what the documents tell a reader to type exists."""

import re
import subprocess
import sys

import pytest

from harness import COMMAND, ROOT, execute

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "HACKING.md", "docs/architecture.md"]
GENERATED = {"docs/benchmarks.md"}  # by `make bench`
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def commands_in(document):
    """Every line of a code block and every piece of inline code."""
    text = (ROOT / document).read_text()
    for block in BLOCK.findall(text):
        yield from (line.removeprefix("$ ").strip() for line in block.splitlines())
    yield from INLINE.findall(BLOCK.sub("", text))


def make_targets():
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_targets_in_documents_exist(document):
    targets = make_targets()
    for command in commands_in(document):
        match = re.match(r"make ([a-z][a-z-]*)\b", command)
        assert match is None or match[1] in targets, f"{document}: {command}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_subcommands_and_options_in_documents_exist(document):
    for command in commands_in(document):
        match = re.match(r"(?:\S*/)?gpumemprof ([a-z][a-z-]*)(.*)", command)
        if match is None:
            continue
        shown = execute([COMMAND, match[1], "--help"])
        assert shown.rc == 0, f"{document}: no subcommand in: {command}"
        for option in OPTION.findall(match[2].split(" -- ")[0]):
            assert option in shown.stdout.decode(), f"{document}: {option} in: {command}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_files_in_documents_exist(document):
    text = (ROOT / document).read_text()
    here = (ROOT / document).parent
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        assert "://" in link or (here / link).exists(), f"{document}: {link}"
    for command in commands_in(document):
        match = re.match(r"(?:bash )?((?:scripts|examples|tests|bench|docs|src)/[\w./-]+)", command)
        if match and "*" not in command and match[1] not in GENERATED:
            assert (ROOT / match[1]).exists(), f"{document}: {command}"


def test_help_lists_every_target_it_describes():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "test-all", "test-fresh", "test-pythons", "bench", "gpu-test", "fmt", "lint", "clean"):
        assert f"make {target} " in shown


def test_the_transformer_trains_and_learns():
    """A few steps of the demo's program: it ends well and its loss on unseen text is below guessing."""
    script = ROOT / "examples" / "train_transformer.py"
    small = ["--steps", "12", "--width", "64", "--layers", "2", "--length", "64", "--device", "cpu"]
    done = execute([sys.executable, script, *small]).ok()
    match = re.search(r"loss on unseen text ([0-9.]+)", done.stdout.decode())
    # 28 characters: a model that knows nothing has a loss of ln 28.
    assert float(match[1]) < 3.33


def test_the_transformer_can_be_recorded(record):
    script = ROOT / "examples" / "train_transformer.py"
    small = ["--steps", "3", "--width", "64", "--layers", "1", "--length", "64", "--device", "cpu"]
    done = record([sys.executable, script, *small]).ok()
    shown = execute([COMMAND, "analyze", done.folder]).ok().stdout.decode()
    assert "train_transformer.py" in shown
