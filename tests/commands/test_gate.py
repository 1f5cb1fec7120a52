"""A program that holds what its arguments say, against a baseline of three known sizes."""

import json
import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as ElementTree

import harness
import pytest
from schema_test import validator

TORCH_PROGRAM = """
import sys
import torch
def hold(size):
    a = torch.empty(4_000_000, dtype=torch.uint8)
    b = torch.empty(size, dtype=torch.uint8)
    c = torch.empty(4_000_000, dtype=torch.uint8)
    return a, b, c
hold(int(sys.argv[1]))
"""
LIGHT_PROGRAM = """
import os, sys
import light
kept = [light.Block(int(size)) for size in sys.argv[2:]]
if sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
print("printed by the program")
sys.exit(int(sys.argv[1]))
"""
LOSING_PROGRAM = """
import resource
import light
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
small = [light.Block(10) for i in range(20_000)]  # 24 bytes each in the recording
large = light.Block(1_500_000)
"""
WORD = "first baseline"


def gate(folder, *argv, **popen):
    return harness.execute([harness.COMMAND, "gate", *argv], cwd=folder, **popen)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    """Of 12,000,000 bytes, in the folder of the program."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("gate")
    (folder / "train.py").write_text(TORCH_PROGRAM)
    gate(folder, "--baseline", "memory.json", "--reason", WORD, "--", harness.PYTHON, "train.py", "4000000").ok()
    return folder / "memory.json"


@pytest.fixture(scope="module")
def grown(baseline):
    """+2 %, with every file that can be asked for."""
    files = ["--markdown", "c.md", "--junit", "c.xml", "--benchmark", "c.json", "--measured", "m.json"]
    return gate(baseline.parent, "--baseline", "memory.json", *files, "--", harness.PYTHON, "train.py", "4240000")


def test_a_baseline_has_the_lines_and_no_name_of_the_machine(baseline):
    kept = json.loads(baseline.read_text())
    validator("memory-baseline.schema.json").validate(kept)
    assert kept["program"]["cpu"]["peak_bytes"] == 12_000_000 and kept["reasons"][0]["reason"] == WORD
    assert [(line["file"], line["line"], line["function"], line["bytes"]) for line in kept["program"]["cpu"]["lines"]] == [
        ("train.py", number, "hold", 4_000_000) for number in (5, 6, 7)
    ]
    assert kept["program"]["cpu"]["lines"][1]["source"] == "b = torch.empty(size, dtype=torch.uint8)"
    for word in (str(baseline.parent), os.uname().nodename, harness.PYTHON):
        assert word not in baseline.read_text()


def test_two_percent_more_fails_and_names_the_line_and_its_bytes(grown):
    assert grown.rc == 3
    first, second = grown.stderr.decode().splitlines()
    assert first == "gpumemprof: peak 11.7 MiB on cpu exceeds the baseline 11.4 MiB by 240,000 bytes (+2.00 %, allowed 1%)"
    assert second == "gpumemprof:     +240,000 bytes  train.py:6 hold  b = torch.empty(size, dtype=torch.uint8)"


def test_half_a_percent_more_passes(baseline):
    done = gate(baseline.parent, "--baseline", "memory.json", "--", harness.PYTHON, "train.py", "4060000")
    assert done.rc == 0 and "(+60,000 bytes, +0.50 %)" in done.stderr.decode()


def test_the_files_for_ci_have_the_same_figures(grown, baseline):
    folder = baseline.parent
    comment = (folder / "c.md").read_text()
    assert "+2.00 % (+240,000 bytes)" in comment and "| +240,000 bytes | 4,240,000 | 4,000,000 | <code>train.py:6 hold</code>" in comment
    suite = ElementTree.parse(folder / "c.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "240,000 bytes" in suite.find("testcase/failure").get("message")
    (benchmark,) = json.loads((folder / "c.json").read_text())
    assert (benchmark["name"], benchmark["unit"], benchmark["value"]) == ("peak of the program on cpu", "bytes", 12_240_000)
    measured = json.loads((folder / "m.json").read_text())
    validator("memory-measurement.schema.json").validate(measured)
    assert measured["program"]["cpu"]["peak_bytes"] == 12_240_000


@pytest.fixture
def program(tmp_path, light):
    """program(*gate's options, run=(exit code, sizes…)) -> Finished, in a folder of its own."""
    (tmp_path / "program.py").write_text(LIGHT_PROGRAM)
    env = {**light.env, "PYTHONPATH": str(harness.PROGRAMS)}

    def run(*options, run=(0, 1_000_000), **popen):
        return gate(tmp_path, *options, "--", harness.PYTHON, "program.py", *map(str, run), env=env, **popen)

    return run


@pytest.fixture
def kept(program, tmp_path):
    program("--baseline", "memory.json", "--reason", WORD).ok()
    return tmp_path / "memory.json"


def test_a_baseline_that_is_not_there_asks_for_a_reason(program, tmp_path):
    done = program("--baseline", "memory.json")
    assert (done.rc, done.stdout) == (2, b"")
    assert done.stderr.decode() == 'gpumemprof: memory.json: no such baseline; --reason "why this peak is right" makes it\n'
    assert not (tmp_path / "memory.json").exists()


@pytest.mark.parametrize("options, said", [
    (["--baseline", "memory.json", "--update"], '--update needs --reason "why the new peak is right"'),
    (["--baseline", "memory.json", "--reason", "again"], "memory.json: exists; --update with --reason replaces it"),
    (["--baseline", "memory.json", "--update", "--reason", "  "], "--reason is empty: say why the peak is right"),
    (["--baseline", "memory.json", "--tolerance", "2"], '--tolerance: "2" is not a tolerance: write 1%, 0.5% or 0'),
    (["--limit", "much"], '--limit: "much" is not a size: write 24GiB, 24GB, 500MiB or bytes'),
    (["--reason", "none"], "--update and --reason need --baseline FILE"),
    (["--limit", "1GB", "--markdown", "-"], "-: standard output is the program's; name a file"),
    ([], "nothing to compare with: give --baseline FILE or --limit SIZE"),
])  # fmt: skip
def test_a_wrong_request_is_answered_before_the_program_starts(program, kept, options, said):
    before = kept.read_bytes()
    done = program(*options)
    assert (done.rc, done.stdout, done.stderr.decode()) == (2, b"", f"gpumemprof: {said}\n")
    assert kept.read_bytes() == before


def test_an_update_keeps_all_reasons(program, kept):
    program("--baseline", "memory.json", "--update", "--reason", "more data", run=(0, 3_000_000)).ok()
    now = json.loads(kept.read_text())
    assert [one["reason"] for one in now["reasons"]] == [WORD, "more data"]
    assert now["program"]["cpu"]["peak_bytes"] == 3_000_000


def test_less_passes_and_asks_for_an_update(program, kept):
    done = program("--baseline", "memory.json", run=(0, 500_000)).ok()
    assert "is below the baseline 977 KiB by 500,000 bytes (-50.00 %): --update --reason" in done.stderr.decode()


def test_the_programs_own_failure_keeps_its_exit_code(program, kept):
    done = program("--baseline", "memory.json", run=(7, 2_000_000))
    assert done.rc == 7 and "exceeds the baseline" in done.stderr.decode()
    killed = program("--baseline", "memory.json", run=("kill", 2_000_000))
    assert killed.rc == 128 + signal.SIGKILL and "exceeds the baseline" in killed.stderr.decode()


def test_peaks_of_a_program_that_failed_are_those_until_then(program, kept, tmp_path):
    for options in ([], ["-q"]):
        files = ["--markdown", tmp_path / "c.md"]
        killed = program("--baseline", "memory.json", *options, *files, run=("kill", 1_000_000))
        assert killed.rc == 128 + signal.SIGKILL
        said = "the program was ended by SIGKILL: its peaks are those until then"
        assert "gpumemprof: " + said in killed.stderr.decode().splitlines()
        assert (tmp_path / "c.md").read_text().splitlines()[3] == said + "."
    done = program("--baseline", "memory.json", run=(7, 1_000_000))
    assert "gpumemprof: the program exited with 7: its peaks are those until then" in done.stderr.decode().splitlines()
    assert "until then" not in program("--baseline", "memory.json", run=(0, 1_000_000)).stderr.decode()


def test_a_program_that_fails_makes_no_baseline(program, tmp_path):
    done = program("--baseline", "memory.json", "--reason", WORD, run=(1, 1000))
    assert done.rc == 1 and "the program failed: memory.json is not written" in done.stderr.decode()
    assert not (tmp_path / "memory.json").exists()


def test_nothing_measured_is_no_success(kept, tmp_path):
    done = gate(tmp_path, "--baseline", "memory.json", "--", "true")
    assert done.rc == 1 and done.stderr.decode().startswith("gpumemprof: nothing measured: ")


def test_a_limit_needs_no_baseline(program):
    assert program("--limit", "1MB").rc == 0
    done = program("--limit", "999999")
    assert done.rc == 3 and "exceeds the limit 999999 bytes by 1 byte" in done.stderr.decode()
    done = program("--limit", "0.5MB")
    assert done.rc == 3 and "exceeds the limit 0.5MB by 500,000 bytes" in done.stderr.decode()


def test_a_peak_of_which_events_were_lost_does_not_pass(program, kept, tmp_path):
    files = ["--markdown", "c.md", "--junit", "c.xml", "--benchmark", "c.json"]
    (tmp_path / "program.py").write_text(LOSING_PROGRAM)
    done = program("--baseline", "memory.json", *files)
    assert done.rc == 1 and "; UNKNOWN whether it passes; NOT EXACT: lost " in done.stderr.decode()
    assert "Memory: 1 of 1 peak unknown: events were lost" in (tmp_path / "c.md").read_text()
    suite = ElementTree.parse(tmp_path / "c.xml").getroot().find("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    assert json.loads((tmp_path / "c.json").read_text())[0]["extra"].startswith("NOT EXACT: lost ")
    before = kept.read_bytes()
    done = program("--baseline", "memory.json", "--update", "--reason", "too low")
    assert done.rc == 1 and "events were lost: memory.json is not written" in done.stderr.decode()
    assert kept.read_bytes() == before
    assert program("--limit", "1").rc == 3


@pytest.mark.parametrize("options", ["ro", "nr_inodes=2,size=64k"])
def test_a_disk_that_refuses_the_recording_is_exit_1_before_the_start(tmp_path, options):
    alone = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o "$0" tmpfs "$1" && shift && exec "$@"', options, tmp_path]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    started = tmp_path.parent / f"{tmp_path.name}-started"
    done = harness.execute([*alone, harness.COMMAND, "gate", "--limit", "1GB", "-o", tmp_path / "recording", "--", "touch", started])
    assert done.rc == 1 and done.stderr.count(b"\n") == 1 and not started.exists(), done


def test_the_programs_output_is_its_own_and_nothing_is_left(program, kept, tmp_path):
    (tmp_path / "tmp").mkdir()
    env = dict(os.environ, TMPDIR=str(tmp_path / "tmp"))
    done = gate(tmp_path, "--limit", "1GB", "--", "echo", "hello", env=env)
    assert done.stdout == b"hello\n" and list((tmp_path / "tmp").iterdir()) == []


def test_the_recording_is_kept_where_it_is_wanted(program, tmp_path):
    done = program("--limit", "1GB", "-o", "recording").ok()
    assert harness.analysis(tmp_path / "recording")["devices"][0]["peak"]["requested_bytes"] == 1_000_000
    assert done.stderr.decode().endswith("gpumemprof: Next: gpumemprof analyze recording\n")


@pytest.mark.parametrize("text, said", [
    (b'{"schema": "gpumemprof.memory-baseline/1", ]', "is not JSON (at byte 44)"),
    (b"", "is not JSON (at byte 1)"),
    (b"[" * 1_000_000, "is not JSON (at byte 1000001)"),
    (b"{}", "is no baseline of gpumemprof gate"),
    (b'{"schema": "gpumemprof.memory-baseline/9"}', "was written by a later version of gpumemprof"),
    (b'{"schema": 1e400}', "has a number that is too large"),
    (b"\xff\xfe\0", "is not JSON (at byte 1)"),
    (b" " * (33 << 20), "larger than 33554432 bytes"),
])  # fmt: skip
def test_a_baseline_that_is_none_is_one_line(program, tmp_path, text, said):
    (tmp_path / "memory.json").write_bytes(text)
    done = program("--baseline", "memory.json")
    assert (done.rc, done.stdout) == (2, b"")
    assert re.fullmatch(r"gpumemprof: memory\.json: .*\n", done.stderr.decode()) and said in done.stderr.decode(), done
    assert (tmp_path / "memory.json").read_bytes() == text


def test_a_name_from_a_hostile_baseline_does_not_reach_the_terminal(program, tmp_path):
    name = "\x1b[2J\u202e|evil"
    (tmp_path / "memory.json").write_text(json.dumps({
        "schema": "gpumemprof.memory-baseline/1", "tests": {name: {"cpu\x1b": {"peak_bytes": 5, "basis": "requested", "lines": []}}},
    }))  # fmt: skip
    done = program("--baseline", "memory.json", "--markdown", "c.md", "--junit", "c.xml").ok()
    assert b"\x1b" not in done.stderr and "\u202e" not in done.stderr.decode()
    assert "\x1b" not in (tmp_path / "c.md").read_text()
    ElementTree.parse(tmp_path / "c.xml")


@pytest.mark.parametrize("option", ["--markdown", "--junit", "--benchmark"])
def test_a_report_that_cannot_be_written_is_told_before_the_program_runs(tmp_path, option):
    done = gate(tmp_path, "--limit", "1GiB", option, "missing/report", "--", "sh", "-c", "touch ran")
    assert done.rc == 1
    assert done.stderr.decode() == "gpumemprof: missing/report: cannot be written: No such file or directory\n"
    assert not (tmp_path / "ran").exists()
