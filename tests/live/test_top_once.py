"""One picture for scripts: exact, and as its schema says."""
import json
import os
import re
import shutil
import subprocess
import time

import harness
import pytest
from commands.programs_for_commands import ALLOCATIONS, LIVE_BYTES, PEAK_BYTES, STANDING, recorded_pid
from live_helpers import picture
from schema_test import validator

MIB = 2**20


def of_pid(said, pid):
    (recording,) = [r for r in said["recordings"] if r["pid"] == pid]
    return recording


def test_the_picture_has_the_programs_exact_figures(standing):
    said = picture("--interval", "0.2")
    validator("live.schema.json").validate(said)
    recording = of_pid(said, standing.pid)
    assert recording["exact"] is True and recording["lost_events"] == 0 and recording["problem"] is None
    assert recording["folder"] == str(standing.folder)
    assert recording["program"] == "python -c" or recording["program"].startswith("python3")
    (device,) = recording["devices"]
    assert device["device"] == "cpu"
    assert device["allocated_bytes"] == LIVE_BYTES
    assert device["peak_bytes"] == PEAK_BYTES
    assert (device["live_blocks"], device["alloc_count"], device["free_count"]) == (4, ALLOCATIONS, 1)
    assert device["bytes_per_second"] == 0 and device["allocations_per_second"] == 0
    assert device["reserved_bytes"] is None and device["unknown"]["reserved_bytes"]
    # 0 once that is known.
    assert device["leak_bytes_per_second"] == 0 or device["unknown"]["leak_bytes_per_second"]


def test_a_run_that_has_allocated_nothing_is_named_by_every_live_command(tmp_path):
    """As a program is that still imports. A shell that starts it is the run's first process, and the one that is named."""
    waits = f"{harness.PYTHON} -c 'import sys; print(1, flush=True); sys.stdin.read()'; true"
    argv = [harness.COMMAND, "run", "-q", "-o", tmp_path / "r", "--", "sh", "-c", waits]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"1\n"
        pid = json.loads((tmp_path / "r" / "meta.json").read_text())["pid"]
        said = picture("--interval", "0")
        info = json.loads(harness.execute([harness.COMMAND, "info", "--format", "json"]).ok().stdout)
        texts = [harness.execute([harness.COMMAND, *words]).ok().stdout.decode() for words in (["info"], ["top", "--once"], ["monitor", "--duration", "0"])]
        run.stdin.close()
    validator("live.schema.json").validate(said)
    validator("info.schema.json").validate(info)
    for shown in (said, info):
        assert [one["pid"] for one in shown["waiting"] if one["folder"] == str(tmp_path / "r")] == [pid]
    assert re.search(rf"  pid {pid}: sh -c .*, into {tmp_path}/r: no allocation yet\n", texts[0])
    # Other runs of this user may take the rows, or be watched.
    assert re.search(rf"\b{pid} sh no allocation yet\n", texts[1]) or len(said["waiting"]) > 1
    assert "None of your recordings is running" not in texts[1]
    assert f"(pid {pid} sh -c" in texts[2] or said["recordings"] or len(said["waiting"]) > 1
    assert "no recorded process of yours is running" not in texts[2]


def test_the_holders_are_the_lines_that_hold(standing):
    (device,) = of_pid(picture("--interval", "0"), standing.pid)["devices"]
    assert sum(h["bytes"] for h in device["holders"]) == LIVE_BYTES
    assert sum(h["count"] for h in device["holders"]) == 4
    for holder in device["holders"]:
        assert re.fullmatch(r"<string>:3 <(module|listcomp)>", holder["line"]), holder
        assert holder["line"] in holder["stack"]
    assert device["bytes_per_second"] is None, "one look tells no rate"


def test_the_machine_is_what_the_kernel_says():
    said = picture("--interval", "0")
    total = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal:"))
    assert said["memory"]["total_bytes"] == total * 1024
    sizes = [p["resident_bytes"] for p in said["processes"]]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) <= 20
    assert (said["accelerators"]["devices"] is None) == ("unknown" in said["accelerators"])


def test_a_large_process_is_listed_with_its_resident_memory(tmp_path):
    code = f"import sys; kept = b'x' * {300 * MIB}; print('ready', flush=True); sys.stdin.readline()"
    with subprocess.Popen([harness.PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        said = picture("--interval", "0")
        pages = int(open(f"/proc/{process.pid}/statm").read().split()[1])
        process.communicate(b"\n")
    (listed,) = [p for p in said["processes"] if p["pid"] == process.pid]
    assert listed["resident_bytes"] == pages * os.sysconf("SC_PAGESIZE") and listed["recorded"] is False


def test_a_threshold_that_is_crossed_is_an_alert():
    said = picture("--interval", "0", "--warning-threshold", "0.1", "--critical-threshold", "100")
    (alert,) = said["alerts"]
    assert alert["level"] == "warning" and "the threshold is 0.1 %" in alert["text"]


def test_as_text_it_is_the_overview(standing):
    text = harness.execute([harness.COMMAND, "top", "--once", "--interval", "0", standing.folder], env={}).ok().stdout.decode()
    # Beside ranks of others a row begins with its rank.
    (row,) = (words for line in text.splitlines() if str(standing.pid) in (words := line.split())[:2])
    row = row[row.index(str(standing.pid)) :]
    assert row[1:6] == ["cpu", "10.0", "MiB", "unknown", "74.0"]
    assert "HELD NOW BY LINES OF" in text


def test_the_lines_of_the_first_row_are_shown(tmp_path):
    """Beside recordings of others the first row may be one of theirs."""
    script = f"""
import sys
sys.path[:0] = [{str(harness.ROOT / "tests")!r}, {str(harness.ROOT / "tests" / "commands")!r}]
import harness, pathlib
from programs_for_commands import standing_program
with standing_program(pathlib.Path({str(tmp_path / "recording")!r})):
    print(harness.execute([harness.COMMAND, "top", "--once", "--interval", "0"]).ok().stdout.decode())
"""
    pytest.importorskip("torch")
    text = harness.execute([*harness.out_of_sight(), harness.PYTHON, "-c", script]).ok().stdout.decode()
    assert "HELD NOW BY LINES OF" in text and "<string>:3" in text


@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_is_wider_than_columns_says(standing, columns):
    done = harness.execute([harness.COMMAND, "top", "--once", "--interval", "0", standing.folder], env={"COLUMNS": str(columns)}).ok()
    widths = [len(line) for line in done.stdout.decode().splitlines()]
    assert columns * 0.7 < max(widths) <= columns, widths


@pytest.mark.parametrize("locale, is_plain", [("C", True), ("C.UTF-8", False)])
def test_its_characters_are_those_of_the_locale(standing, locale, is_plain):
    done = harness.execute([harness.COMMAND, "top", "--once", "--interval", "0", standing.folder], env={"LC_ALL": locale}).ok()
    assert done.stdout.isascii() == is_plain


def test_the_sum_of_host_memory_is_whole_above_the_table_of_holders(standing):
    done = harness.execute([harness.COMMAND, "top", "--once", "--interval", "0", standing.folder], env={"COLUMNS": "60"}).ok()
    lines = done.stdout.decode().splitlines()
    head = next(i for i, line in enumerate(lines) if "HELD NOW BY LINES OF" in line)
    first = next(i for i, line in enumerate(lines) if line.startswith("host memory, "))
    said = " ".join(lines[first:head])
    assert first < head and re.fullmatch(r"host memory, .* resident: .*the rest [0-9.]+ [KMG]?i?B", said.strip()), said


def test_what_makes_no_sense_is_one_line(tmp_path):
    for options, words in ((["--format", "json"], "needs --once"), ([], "needs a terminal"),
                           (["--once", "--interval", "-1"], "--interval"), (["--once", "--interval", "0.01"], "--interval"),
                           (["--once", str(tmp_path / "none")], "none"),
                           (["--once", "--warning-threshold", "90", "--critical-threshold", "80"], "above")):
        done = harness.execute([harness.COMMAND, "top", *options])
        assert done.rc == 2 and done.stderr.count(b"\n") == 1, done
        assert words in done.stderr.decode()


ELSEWHERE = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]


def test_the_recording_of_another_container_is_one_and_stays_while_nobody_says_that_it_ended(tmp_path):
    """A process with a host name of its own: seen in /proc and in the folder it is one; a copy alone is of another machine."""
    pytest.importorskip("torch")
    if subprocess.run([*ELSEWHERE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("a host name of its own needs root")
    argv = [*ELSEWHERE, *harness.run_argv(tmp_path / "r", [harness.PYTHON, "-c", STANDING], ["--quiet"])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        pid = recorded_pid(tmp_path / "r")
        seen = of_pid(picture("--interval", "0", str(tmp_path / "r")), pid)
        (file,) = harness.files(tmp_path / "r")
        (tmp_path / "copy").mkdir()
        for _ in range(600):  # the file has what happened up to a tenth of a second ago
            shutil.copy(file, tmp_path / "copy")
            devices = harness.analysis(tmp_path / "copy")["devices"]
            if devices and devices[0]["end"]["requested_bytes"] == LIVE_BYTES:
                break
            time.sleep(0.05)
        process.communicate("\n", timeout=60)
    assert seen["resident_bytes"] > LIVE_BYTES and seen["devices"][0]["allocated_bytes"] == LIVE_BYTES
    assert seen["host_memory"]["pinned_bytes"] == 0  # it has no GPU open
    said = picture("--interval", "0", str(tmp_path))  # one level above both
    validator("live.schema.json").validate(said)
    copy = of_pid(said, pid)
    assert copy["host_memory"]["pinned_bytes"] is None
    assert copy["host"] == "elsewhere" and copy["resident_bytes"] is None and copy["unknown"]["resident_bytes"]
    assert copy["devices"][0]["allocated_bytes"] == LIVE_BYTES and copy["devices"][0]["peak_bytes"] == PEAK_BYTES
    os.utime(tmp_path / "copy" / file.name, (0, 0))
    assert not [r for r in picture("--interval", "0", str(tmp_path / "copy"))["recordings"] if r["pid"] == pid], "long ago"
    ended = picture("--interval", "0", str(tmp_path / "r"))
    assert [r for r in ended["recordings"] if r["pid"] == pid] == [], "its own file says that it has ended"
