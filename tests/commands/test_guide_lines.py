"""The command lines that the guide shows."""
import os
import signal
import subprocess
import time

import harness
import pytest
from carried_page import CarriedPage

# The commands of the guide's script in its order; tests/spec runs the document's own where it is there.
SCRIPT = """#!/bin/bash
gpumemprof track --output training_memory.json --warning-threshold 75 --critical-threshold 92 &
tracker=$!
python train_model.py
kill $tracker
gpumemprof analyze training_memory.json --visualization --plot-dir training_plots --output memory_report.txt --format txt
echo "analysed at once"
"""


@pytest.fixture
def shell(tmp_path):
    """shell(line) in an empty folder, `gpumemprof` and `python` being ours."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gpumemprof").symlink_to(harness.COMMAND)
    (tools / "python").write_text(f'#!/bin/sh\nexec "{harness.PYTHON}" "$@"\n')
    (tools / "python").chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    def run(line, **popen):
        return subprocess.Popen(["bash", "-c", line], cwd=folder, env=env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True, **popen)

    run.folder = folder
    return run


def finished(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    assert err == ""
    return out


def test_info(shell):
    out = finished(shell("gpumemprof info"))
    total = int(next(line for line in open("/proc/meminfo") if line.startswith("MemTotal")).split()[1]) * 1024
    assert f"Memory: {total / 2**30:.3g} GiB" in out


def test_monitor_writes_the_named_file(shell):
    process = shell("exec gpumemprof monitor --interval 1.0 --duration 120 --output monitor.csv")
    time.sleep(2.5)  # as written it takes two minutes; Ctrl-C ends it early
    process.send_signal(signal.SIGINT)
    out = finished(process)
    assert "Saved: monitor.csv" in out and "highest sample" in out
    assert (shell.folder / "monitor.csv").read_text().startswith("schema_version,timestamp_ns,")
    assert "CSV" in finished(shell("gpumemprof analyze monitor.csv"))


def test_track_and_analyze(shell):
    process = shell("exec gpumemprof track --output results.json --warning-threshold 70 --critical-threshold 90")
    time.sleep(1.5)
    process.terminate()
    assert "Saved: results.json" in finished(process)
    out = finished(shell("gpumemprof analyze results.json --visualization --plot-dir plots"))
    assert "Analyzing profiling results from: results.json" in out
    assert "Wrote plots/memory_timeline.html" in out
    page = CarriedPage((shell.folder / "plots" / "memory_timeline.html").read_text())
    assert any(part["kind"] == "chart" for section in page.files[0]["document"]["sections"] for part in section["parts"])


def test_a_script_that_kills_the_tracker_and_analyses_at_once(shell):
    (shell.folder / "train_model.py").write_text("import time\nx = bytearray(50 << 20)\ntime.sleep(1.5)\n")
    (shell.folder / "script.sh").write_text(SCRIPT)
    out, err = shell("bash script.sh").communicate(timeout=60)
    assert err == ""
    assert out.rstrip().endswith("analysed at once")
    report = (shell.folder / "memory_report.txt").read_text()
    assert "Score: " in report and "Nothing was lost." in report
    assert [p.name for p in (shell.folder / "training_plots").iterdir()] == ["memory_timeline.html"]
    assert "Wrote training_plots/memory_timeline.html" in out


def test_help_names_every_command(shell):
    out = finished(shell("gpumemprof --help"))
    for name in ("run", "info", "monitor", "track", "analyze", "diagnose", "lines", "export", "seal"):
        assert f"  {name} " in out
        finished(shell(f"gpumemprof {name} --help"))
