"""gpumemprof info and diagnose: what they say is what the kernel says, and nothing that it does not."""
import json
import os
import shutil
import socket
import subprocess

import harness
import pytest
from programs_for_commands import LIVE_BYTES, PEAK_BYTES, recorded_pid, standing_program
from test_analyze_telemetry import validator

DIAGNOSE = [harness.COMMAND, "diagnose"]


def meminfo(key):
    return int(next(line for line in open("/proc/meminfo") if line.startswith(key + ":")).split()[1]) * 1024


def test_info_is_what_the_kernel_says():
    said = json.loads(harness.execute([harness.COMMAND, "info", "--format", "json"]).ok().stdout)
    validator("info.schema.json").validate(said)
    assert said["memory"]["total_bytes"] == meminfo("MemTotal")
    assert abs(said["memory"]["available_bytes"] - meminfo("MemAvailable")) < 2**30
    assert said["system"]["cpus"] == os.cpu_count()
    assert said["gpu"]["devices"] is None and said["gpu"]["unknown"]["devices"]


def test_info_detailed_follows_its_schema():
    said = json.loads(harness.execute([harness.COMMAND, "info", "--detailed", "--format", "json"]).ok().stdout)
    validator("info.schema.json").validate(said)
    assert said["gpu"]["device"] is None and "probe" in said


def test_diagnose_writes_the_documented_bundle(tmp_path):
    own = ["--pid", os.getpid()]  # other programs recorded on this machine may be out of memory
    done = harness.execute([*DIAGNOSE, *own, "--output", tmp_path / "d", "--duration", "0.4", "--interval", "0.1"]).ok()
    lines = done.stdout.decode().splitlines()
    assert lines[0] == f"Artifact: {tmp_path}/d"
    assert lines[1] == "Status: OK (exit_code=0)"
    files = {p.name: json.loads(p.read_text()) for p in (tmp_path / "d").iterdir()}
    assert sorted(files) == sorted(files["manifest.json"]["files"]) == [
        "diagnostic_summary.json", "environment.json", "manifest.json", "telemetry_timeline.json"]
    assert files["manifest.json"]["version"] == 1 and files["manifest.json"]["exit_code"] == 0
    assert set(files["environment.json"]) == {"system", "gpu", "fragmentation"}
    timeline = files["telemetry_timeline.json"]
    assert len(timeline["timestamps"]) == len(timeline["allocated"]) == len(timeline["reserved"]) >= 2
    validator("diagnostic-summary.schema.json").validate(files["diagnostic_summary.json"])
    assert files["diagnostic_summary.json"]["peak_bytes"] == max(timeline["allocated"])
    text = (tmp_path / "d" / "environment.json").read_text()
    assert socket.gethostname() not in text or len(socket.gethostname()) < 3
    assert os.getcwd() not in text
    analyzed = json.loads(harness.execute([harness.COMMAND, "analyze", tmp_path / "d", "--format", "json"]).ok().stdout)
    assert analyzed["source"]["events"] == len(timeline["timestamps"])


def test_diagnose_makes_a_folder_of_its_own_inside_one_that_exists(tmp_path):
    for count in (1, 2):
        harness.execute([*DIAGNOSE, "--output", tmp_path, "--duration", "0"]).ok()
        made = list(tmp_path.iterdir())
        assert len(made) == count and all(p.name.startswith("gpumemprof-diagnose-") for p in made)
    summary = json.loads((made[0] / "diagnostic_summary.json").read_text())
    validator("diagnostic-summary.schema.json").validate(summary)
    assert summary["allocated_bytes"] is None and summary["unknown"]["allocated_bytes"], "nothing was measured"
    assert summary["utilization_ratio"] is None


def test_diagnose_of_a_recorded_process_is_exact(tmp_path):
    with standing_program(tmp_path / "r"):
        one = ["--pid", recorded_pid(tmp_path / "r")]
        harness.execute([*DIAGNOSE, *one, "--output", tmp_path / "d", "--duration", "0.2", "--interval", "0.1"]).ok()
    summary = json.loads((tmp_path / "d" / "diagnostic_summary.json").read_text())
    assert summary["basis"] == "exact" and summary["allocated_bytes"] == LIVE_BYTES
    assert summary["peak_bytes"] in (LIVE_BYTES, PEAK_BYTES)


def test_a_machine_that_is_nearly_full_is_a_risk(tmp_path):
    """The kernel's file replaced, in a mount namespace of the command's own: 95 % in use."""
    fake = tmp_path / "meminfo"
    fake.write_text("MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable: 50000 kB\n")
    alone = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/meminfo && exec "$@"', fake]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    info = json.loads(harness.execute([*alone, harness.COMMAND, "info", "--format", "json"]).ok().stdout)
    if info["memory"]["cgroup_limit_bytes"] is not None or info["recordings"]:
        pytest.skip("a cgroup's limit or a recorded program comes before the machine")
    done = harness.execute([*alone, *DIAGNOSE, "--output", tmp_path / "d", "--duration", "0.1", "--interval", "0.05"])
    assert done.rc == 2
    assert b"Status: MEMORY_RISK (exit_code=2)\nFindings: high utilization\n" in done.stdout
    summary = json.loads((tmp_path / "d" / "diagnostic_summary.json").read_text())
    assert summary["risk_flags"]["high_utilization"] is True and summary["utilization_ratio"] == pytest.approx(0.95)
    assert json.loads((tmp_path / "d" / "manifest.json").read_text())["risk_detected"] is True


def test_diagnose_that_fails_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    done = harness.execute([*DIAGNOSE, "--output", tmp_path / "file" / "d", "--duration", "0"])
    assert done.rc == 1 and done.stderr.count(b"\n") == 1
    assert done.stdout == b"Status: FAILED (exit_code=1)\n"


def test_diagnose_of_a_process_that_is_not_there_is_a_wrong_option(tmp_path):
    done = harness.execute([*DIAGNOSE, "--pid", "4194303", "--duration", "0"], cwd=tmp_path)
    assert (done.rc, done.stdout, done.stderr) == (2, b"", b"gpumemprof: no process 4194303\n")


def test_lines_hands_the_script_and_its_words_to_python(tmp_path):
    """Up to the module itself, which has tests of its own: a stand-in prints what it was given."""
    package = tmp_path / "gpumemprof"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lines.py").write_text("import sys, json; print(json.dumps(sys.argv[1:])); sys.exit(5)")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "GPUMEMPROF_PYTHON": harness.PYTHON}
    words = ["train.py", "--help", "--epochs", "2", "-v", "a b"]
    done = harness.execute([harness.COMMAND, "lines", *words], env=env, cwd=tmp_path)
    assert (done.rc, json.loads(done.stdout)) == (5, words)
    missing = harness.execute([harness.COMMAND, "lines"])
    assert missing.rc == 2 and missing.stderr.count(b"\n") == 1
