"""The help, and what is said where the words are wrong."""
import subprocess

import harness
import pytest

GROUPS = {
    "Record": ["run", "lines", "gate"], "Understand": ["analyze", "view", "advise", "diff", "sql", "mcp", "explain-oom"],
    "Predict": ["whatif", "estimate", "calibrate"], "Watch": ["top", "serve", "monitor", "track", "info", "diagnose"],
    "Keep": ["runs", "export", "seal"], "Set up": ["completion"],
}  # fmt: skip


def call(*words):
    return subprocess.run([harness.COMMAND, *words], capture_output=True, text=True, timeout=60)


def test_alone_it_shows_its_help():
    assert (call().returncode, call().stdout) == (0, call("--help").stdout)
    assert call("help").stdout == call("--help").stdout
    assert call("help", "run").stdout == call("run", "--help").stdout
    assert call("-V").stdout == call("--version").stdout


def test_its_first_line_names_what_it_records():
    assert "the memory of a PyTorch, TensorFlow or JAX program" in call("--help").stdout.splitlines()[0]


def test_every_command_is_in_a_group():
    groups, group = {}, None
    for line in call("--help").stdout.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            group = line[:-1]
        elif line.startswith("  ") and line[2] != " " and group != "Options":
            groups.setdefault(group, []).append(line.split()[0])
    assert list(groups.items()) == list(GROUPS.items())


@pytest.mark.parametrize("command", [name for names in GROUPS.values() for name in names])
def test_every_command_has_two_examples(command):
    lines = call(command, "--help").stdout.splitlines()
    examples = lines[lines.index("Examples:") + 1 :]
    assert len(examples) == 2 and all(f"gpumemprof {command}" in line for line in examples)


@pytest.mark.parametrize("command", [name for names in GROUPS.values() for name in names])
def test_the_help_of_a_command_has_one_usage_and_no_words_of_the_parser(command):
    text = call(command, "--help").stdout
    assert text.count("Usage: ") == 1 and f"Usage: gpumemprof {command} " in text
    for word in ("TEXT", "REQUIRED", "NONNEGATIVE", "POSITIVE", "FLOAT", "INT in", "={", ":{", "Excludes", "Needs"):
        assert word not in text, word


@pytest.mark.parametrize("words, said", [
    (["analize", "x"], "unknown command 'analize'; did you mean analyze? (see gpumemprof --help)"),
    (["xyzzy"], "unknown command 'xyzzy' (see gpumemprof --help)"),
    (["analyze", "--fromat", "json", "x"], "--fromat is not an option of analyze; did you mean --format? (see gpumemprof analyze --help)"),
    (["diff", "--colour=never", "x"], "--colour is not an option of diff; did you mean --color? (see gpumemprof diff --help)"),
    (["run", "--stak", "none", "--", "true"], "--stak is not an option of run; did you mean --stacks? (see gpumemprof run --help)"),
    (["run", "--frce", "--", "true"], "--frce is not an option of run; did you mean --force? (see gpumemprof run --help)"),
    (["run", "--frce", "true"], "--frce is not an option of run; did you mean --force? (see gpumemprof run --help)"),
    (["gate", "--limt=1GiB", "--", "true"], "--limt is not an option of gate; did you mean --limit? (see gpumemprof gate --help)"),
    (["estimate", "--modle", "timm:resnet18"], "--modle is not an option of estimate; did you mean --model? (see gpumemprof estimate --help)"),
    (["advise", "r", "--", "python", "x.py", "--lr", "3"], "give recordings or a program, not both (see gpumemprof advise --help)"),
    (["view", "a", "b", "c"], "view takes 2 paths at most (see gpumemprof view --help)"),
    (["-x"], "-x is not an option of gpumemprof (see gpumemprof --help)"),
    (["monitor", "--pid", "x"], "--pid: 'x' is not a whole number above 0 (see gpumemprof monitor --help)"),
    (["track", "--pid", "", "--duration", "1"], "--pid: '' is not a whole number above 0 (see gpumemprof track --help)"),
    (["analyze", "--fail-on", "", "x"], "--fail-on: a value is missing (see gpumemprof analyze --help)"),
    (["gate", "--limit", "", "--", "true"], "--limit: a value is missing (see gpumemprof gate --help)"),
    (["sql", "a", "--timeout", "-1", "select 1"], "--timeout: '-1' is below 0 (see gpumemprof sql --help)"),
    (["track", "--oom-max-dumps", "0"], "--oom-max-dumps: '0' is not above 0 (see gpumemprof track --help)"),
    (["monitor", "--duration", "abc"], "--duration: 'abc' is not a number from 0 on (see gpumemprof monitor --help)"),
    (["monitor", "--duration", "nan"], "--duration: 'nan' is not a number from 0 on (see gpumemprof monitor --help)"),
    (["track", "--interval", "0"], "--interval: '0' is not from 0.001 to 86400 (see gpumemprof track --help)"),
    (["diff", "a", "b", "--rows", "0"], "--rows: '0' is not above 0 (see gpumemprof diff --help)"),
    (["diff", "a", "b", "--rows", "-1"], "--rows: '-1' is not a whole number above 0 (see gpumemprof diff --help)"),
    (["diff", "a", "b", "--rows", "2.5"], "--rows: '2.5' is not a whole number above 0 (see gpumemprof diff --help)"),
    (["diff", "a", "--steps", "-1", "3"], "--steps: '-1' is not a whole number from 0 on (see gpumemprof diff --help)"),
    (["view", "a", "--port", "99999999"], "--port: '99999999' is not a whole number from 0 to 65535 (see gpumemprof view --help)"),
    (["top", "--once", "--warning-threshold", "500"], "--warning-threshold: '500' is not from 0.1 to 100 (see gpumemprof top --help)"),
    (["whatif", "a", "--threads", "x"], "--threads: 'x' is not a whole number from 1 to 64 (see gpumemprof whatif --help)"),
    (["analyze", "a", "--sensitivity", "x"], "--sensitivity: 'x' is not a number (see gpumemprof analyze --help)"),
    (["analyze", "a", "--capacity", "lots"], '--capacity: "lots" is not a size: write 24GiB, 24GB, 500MiB or bytes'),
    (["analyze", "a", "--plot-dir", "b"], "--plot-dir goes with --visualization (see gpumemprof analyze --help)"),
    (["run", "--explain-leaks", "--no-explain-leaks", "--", "true"],
     "--explain-leaks does not go with --no-explain-leaks (see gpumemprof run --help)"),
    (["top", "--once=maybe"], "--once takes no value (see gpumemprof top --help)"),
    (["advise", "a", "--steps", "3"], "--steps goes with a program: -- COMMAND"),
    (["advise", "a", "--steps", "0"], "--steps: '0' is not above 0 (see gpumemprof advise --help)"),
    (["advise", "a", "--no-measuring"], "--no-measuring goes with a program: -- COMMAND"),
    (["advise", "a", "--capacity", "24GiB"], "--capacity goes with --price or --prices"),
    (["help", "analyse"], "unknown command 'analyse'; did you mean analyze? (see gpumemprof --help)"),
    (["analyse", "--help"], "unknown command 'analyse'; did you mean analyze? (see gpumemprof --help)"),
    (["serve", "--prot", "1"], "--prot is not an option of serve (see gpumemprof serve --help)"),
    (["analyze", "--format", "xx", "x"], "--format: 'xx' is not one of text, txt, json, html (see gpumemprof analyze --help)"),
    (["export", "x", "--to"], "--to: a value is missing (see gpumemprof export --help)"),
    (["track", "--output"], "--output: a value is missing (see gpumemprof track --help)"),
    (["explain-oom", "a", "b", "c"], "unexpected argument 'b' (see gpumemprof explain-oom --help)"),
    (["calibrate", "--device", "x"], "--device: 'x' is not a whole number from 0 to 1023 (see gpumemprof calibrate --help)"),
    (["calibrate", "--device", "5000"], "--device: '5000' is not from 0 to 1023 (see gpumemprof calibrate --help)"),
    (["analyze"], "path is required (see gpumemprof analyze --help)"),
    (["export", "x"], "--to is required: jsonl, csv, perfetto, perfetto-tar, parquet, sqlite, pprof, speedscope, folded, html or snapshot (see gpumemprof export --help)"),
])
def test_a_wrong_word_is_answered_with_what_was_meant(words, said):
    done = call(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"gpumemprof: {said}\n")


def test_a_format_that_is_not_written_is_refused(tmp_path):
    recording = harness.ROOT / "tests" / "compat" / "1.0-small.gmp"
    done = call("analyze", str(recording), "-o", str(tmp_path / "x.pdf"))
    assert done.returncode == 2 and "cannot write .pdf" in done.stderr
    assert not (tmp_path / "x.pdf").exists()
