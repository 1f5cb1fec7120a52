"""What bash, zsh and fish complete, and the page of the manual: both are written from the commands' own help."""

import os
import re
import shutil
import subprocess

import harness
import pytest
from shells import SHARE, SHELLS, complete

TOOLS = ["gpumemprof", "tfmemprof"]
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


@pytest.fixture(scope="module")
def helps():
    """{tool: {command: its help}}; "" is the tool's own."""
    result = {}
    for tool in TOOLS:
        def shown(*words, tool=tool):
            return subprocess.run([tool, *words, "--help"], executable=harness.COMMAND, capture_output=True, text=True, timeout=30).stdout
        commands = re.findall(r"^  ([a-z][a-z-]*) {3,}", shown(), re.MULTILINE)
        assert len(commands) > 10
        result[tool] = {command: shown(*command.split()) for command in ["", *commands]}
    return result


def test_a_script_that_a_full_disk_cuts_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([harness.COMMAND, "completion", "bash"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("gpumemprof: standard output: ")


def options_of(text):
    """Those of the table of options, of which each stands at the beginning of a line."""
    return {name for names in re.findall(r"^  (-[\w,-]+)", text.partition("\nExamples:")[0], re.MULTILINE) for name in names.split(",")}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "alpha.gmp").write_text("")
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "train.py").write_text("")
    return tmp_path


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("shell", SHELLS)
def test_commands_are_completed(shell, tool, folder, helps):
    assert complete(shell, tool, [""], folder) == sorted([*filter(None, helps[tool]), "help"])
    assert complete(shell, tool, ["an"], folder) == ["analyze"]
    assert complete(shell, tool, ["help", "se"], folder) == ["seal", "serve"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("words, offered", [
    (["export", "--to", ""], "csv folded html jsonl parquet perfetto perfetto-tar pprof snapshot speedscope sqlite"),
    (["export", "x", "--by", "m"], "module"),
    (["export", "--at", ""], "end last-alloc peak total"),
    (["analyze", "--format", ""], "html json text txt"),
    (["analyze", "--format=j"], "json"),
    (["run", "--stacks", "n"], "native none"),
    (["estimate", "--precision", "amp"], "amp-bf16 amp-fp16"),
    (["estimate", "--batch", "a"], "auto"),
    (["completion", ""], "bash fish zsh"),
    (["analyze", "a"], "alpha.gmp apart"),  # a recording is a file or a folder
    (["analyze", "-o", "a"], "alpha.gmp apart"),
    (["run", "-o", "a"], "apart"),
    (["seal", "a"], "apart"),
    (["lines", "apart/t"], "apart/train.py"),
    (["run", "--", "cat", "a"], "alpha.gmp apart"),
    (["serve", "--listen", ""], ""),
])  # fmt: skip
def test_values_and_files_are_completed(shell, words, offered, folder):
    typed = words
    if shell == "bash" and "=" in words[-1]:  # as bash splits it
        name, _, value = words[-1].partition("=")
        typed = [*words[:-1], name, "=", value]
    assert complete(shell, "gpumemprof", typed, folder) == offered.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_program_behind_two_dashes_is_completed(shell, folder, monkeypatch):
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "a-program-of-this-test").write_text("#!/bin/sh\n")
    (bin_folder / "a-program-of-this-test").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{bin_folder}")
    assert complete(shell, "gpumemprof", ["run", "-q", "--", "a-prog"], folder) == ["a-program-of-this-test"]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_every_option_is_completed(shell, tool, folder, helps):
    for command, text in helps[tool].items():
        words = [*command.split(), "--"]
        offered = set(complete(shell, tool, words, folder)) - {"--"}
        assert offered == {option for option in options_of(text) if option.startswith("--")}, command


@pytest.mark.parametrize("command", ["analyze", "run", "track"])
def test_zsh_completes_every_option(command, folder, helps):
    """One by one: each takes a shell."""
    offered = set(complete("zsh", "gpumemprof", [command, "-"], folder)) - {"--"}
    assert offered == options_of(helps["gpumemprof"][command])


@pytest.mark.parametrize("tool", TOOLS)
def test_every_command_and_option_is_in_the_manual(tool, helps):
    page = (SHARE / "man" / "man1" / f"{tool}.1").read_text().replace("\\-", "-")
    parts = dict(zip(*[iter(re.split(r"^\.SS \w+ (.*)\n", page, flags=re.MULTILINE)[1:])] * 2))
    for command, text in helps[tool].items():
        part = parts[command] if command else page
        for option in options_of(text):
            assert f"\\fB{option}\\fR" in part, (command, option)
        assert " ".join(text.splitlines()[0 if command else 0].split()[:3]) in " ".join(part.split()), command
    assert set(parts) == set(filter(None, helps[tool]))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("check", [["man", "--warnings", "-l"], ["mandoc", "-T", "lint", "-W", "style"]], ids=["man", "mandoc"])
def test_the_manual_is_clean(tool, check):
    if shutil.which(check[0]) is None:
        pytest.skip(f"no {check[0]} here: scripts/setup shells installs it")
    env = dict(os.environ, LC_ALL="C.UTF-8", MANROFFSEQ="", MANWIDTH="100")
    done = subprocess.run([*check, SHARE / "man" / "man1" / f"{tool}.1"], env=env, capture_output=True, text=True, timeout=60)
    warnings = done.stderr if check[0] == "man" else done.stdout + done.stderr
    assert (done.returncode, warnings) == (0, "")
    if check[0] == "man":
        assert f"{tool} analyze [OPTIONS] PATH..." in done.stdout


def test_an_unknown_shell_is_refused():
    done = subprocess.run([harness.COMMAND, "completion", "tcsh"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "bash" in done.stderr and done.stdout == ""
