"""gpumemprof monitor: samples to look at, to a file or to standard output."""
import csv
import io
import json
import os

import harness
import pytest
from programs_for_commands import LIVE_BYTES, recorded_pid, standing_program, telemetry
from test_analyze_telemetry import validator

MONITOR = [harness.COMMAND, "monitor"]
THIS = ["--pid", str(os.getpid())]  # and nobody else's recordings, whatever else the machine does
FAST = ["--duration", "0.1", "--interval", "0.02"]


def test_standard_output_is_json_alone():
    done = harness.execute([*MONITOR, *THIS, *FAST, "--format", "json"]).ok()
    events = json.loads(done.stdout)
    assert events and {e["event_type"] for e in events} == {"sample"}
    assert b"highest sample" in done.stderr, "words for people go elsewhere"


def test_standard_output_is_csv_alone():
    done = harness.execute([*MONITOR, *THIS, *FAST, "--format", "csv"]).ok()
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert rows and all(int(row["device_total_bytes"]) > 0 for row in rows)


def test_events_follow_the_schema(tmp_path):
    with standing_program(tmp_path / "r"):
        harness.execute([*MONITOR, *FAST, "--output", tmp_path / "all.json"]).ok()
        pid = recorded_pid(tmp_path / "r")
        harness.execute([*MONITOR, *FAST, "--pid", pid, "--output", tmp_path / "one.json"]).ok()
    check = validator("telemetry-event-v2.schema.json")
    for event in telemetry(tmp_path / "all.json") + telemetry(tmp_path / "one.json"):
        check.validate(event)
    assert {e["allocator_allocated_bytes"] for e in telemetry(tmp_path / "one.json")} == {LIVE_BYTES}


def test_the_summary_is_of_the_samples(tmp_path):
    with standing_program(tmp_path / "r"):
        pid = recorded_pid(tmp_path / "r")
        out = harness.execute([*MONITOR, *FAST, "--pid", pid]).ok().stdout.decode()
    assert f"pid {pid} cpu: highest sample 10.0 MiB, mean 10.0 MiB, last 10.0 MiB in " in out


def test_the_share_of_the_machine_is_told_as_that_of_all_processes(tmp_path):
    path = tmp_path / "t.json"
    with standing_program(tmp_path / "r"):
        pid = recorded_pid(tmp_path / "r")
        out = harness.execute([*MONITOR, "--duration", "0", "--pid", pid, "--output", path]).ok().stdout.decode()
    (event,) = telemetry(path)
    share = 100 * event["device_used_bytes"] / event["device_total_bytes"]
    assert f"pid {pid} cpu: 10.0 MiB; all processes use {share:.1f} % of " in out


@pytest.mark.parametrize("command", [["monitor", *FAST], ["monitor", *THIS, *FAST], ["track", *THIS, *FAST], ["diagnose", *THIS, *FAST], ["info"]])
def test_an_accelerator_that_no_driver_shows_is_an_error(command, tmp_path):
    done = harness.execute([harness.COMMAND, *command, "--device", "7"], cwd=tmp_path)
    assert (done.rc, done.stdout, list(tmp_path.iterdir())) == (2, b"", [])
    assert done.stderr.startswith(b"gpumemprof: --device 7: no NVIDIA driver") and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("explicit, name, first", [("csv", "a.json", "schema_version,"), ("json", "a.csv", "["), (None, "a", "schema_")])
def test_an_explicit_format_goes_before_the_name(tmp_path, explicit, name, first):
    options = ["--format", explicit] if explicit else []
    harness.execute([*MONITOR, "--duration", "0", *options, "--output", tmp_path / name]).ok()
    assert (tmp_path / name).read_text().startswith(first)
