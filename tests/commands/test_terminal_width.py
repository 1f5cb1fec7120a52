"""On a terminal no line is longer than it is wide, as far as words are shorter; what is piped stays as it is."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

import harness
import pytest

SNAPSHOT = harness.ROOT / "tests/fixtures/recordings/limited_2.11.pickle"
CONFIG = """{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
             "intermediate_size": 1376, "vocab_size": 32000}"""
LONG = {"analyze": [SNAPSHOT], "advise": [SNAPSHOT], "diff": [SNAPSHOT, SNAPSHOT], "run": ["--help"], "export": ["--help"],
        "whatif": [SNAPSHOT], "estimate": ["--config", "config.json", "--sequence", "1024"]}


def shown(columns, *words, **environment):
    """What a terminal of so many columns is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "NO_COLOR": "1", **environment}
    if "COLUMNS" not in environment:
        env.pop("COLUMNS", None)
    process = subprocess.Popen([harness.COMMAND, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, env=env)
    os.close(theirs)
    out = b""
    try:
        while piece := os.read(ours, 65536):
            out += piece
    except OSError:  # its last writer is gone
        pass
    os.close(ours)
    assert process.wait(60) in (0, 3)
    return out.decode().replace("\r\n", "\n")


def piped(*words):
    return subprocess.run([harness.COMMAND, *words], capture_output=True, text=True, timeout=60).stdout


def too_long(text, columns):
    """Lines that are, and that have a blank to be broken at behind their margin and first column."""
    long = [line for line in text.splitlines() if len(line) > columns]
    return [line for line in long if " " in line[columns // 2 :].strip() and line.rfind(" ", columns // 2, columns) > 0]


@pytest.mark.parametrize("name", LONG)
def test_words_go_on_in_the_next_line_below_their_column(name, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    words = [name, *LONG[name]]
    text = piped(*words)
    assert too_long(text, 60), "the file or the help is one that needs more"
    for columns in (60, 80):
        told = shown(columns, *words)
        wrapped, _, examples = told.partition("\nExamples:\n")
        assert too_long(wrapped, columns) == []
        assert examples.splitlines() == text.partition("\nExamples:\n")[2].splitlines(), "they are for copying"
        assert told.split() == text.split(), "no word is lost or added"


def test_columns_says_more_than_the_terminal():
    assert shown(80, "run", "--help", COLUMNS="60") == shown(60, "run", "--help") != shown(80, "run", "--help")
    assert shown(0, "run", "--help") == shown(100, "run", "--help")


def test_an_option_and_what_it_means_stay_two_columns():
    lines = shown(80, "run", "--help").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  -o,"))
    column = 30
    assert lines[at][column - 1] == " " != lines[at][column]
    assert lines[at + 1][:column].strip() == "" and lines[at + 1][column] != " ", "its second line"
