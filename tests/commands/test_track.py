"""gpumemprof track: the file is whole however it ends, and its numbers are the process's own."""
import csv
import json
import os
import random
import resource
import signal
import subprocess
import time

import harness
import pytest
from programs_for_commands import (ALLOCATIONS, LIVE_BYTES, PEAK_BYTES, recorded_pid, standing_program, telemetry)

TRACK = [harness.COMMAND, "track"]
THIS = ["--pid", str(os.getpid())]  # and nobody else's recordings, whatever else the machine does
TRACK_THIS = [*TRACK, *THIS]


def of_type(events, kind):
    return [event for event in events if event["event_type"] == kind]


def start(*options, **popen):
    return subprocess.Popen([*TRACK, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_the_file_is_whole_after_a_signal_at_any_moment(tmp_path, kind):
    choose = random.Random(7)
    for turn in range(25):
        path = tmp_path / f"{turn}.json"
        tracker = start(*THIS, "--output", path, "--interval", "0.002")
        # From before main() blocks signals nothing can be left, so the first moment is that of the file.
        while not path.exists():
            time.sleep(0.0005)
        time.sleep(choose.random() * 0.05)
        tracker.send_signal(kind)
        analyzed = subprocess.run([harness.COMMAND, "analyze", path, "--format", "json"], capture_output=True, check=False)
        assert analyzed.returncode == 0, analyzed.stderr
        said = json.loads(analyzed.stdout)
        assert said["lost"]["reasons"] == [], said["lost"]
        assert not said["notes"], "analyze waits for a tracker that ends"
        assert tracker.wait(20) == 0, tracker.stderr.read()
        events = telemetry(path)
        assert said["source"]["events"] == len(events)
        assert events[0]["event_type"] == "start" and events[-1]["event_type"] == "stop"
        assert len(of_type(events, "sample")) >= 2


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv"])
def test_kill_9_loses_at_most_a_last_line_that_is_stated(tmp_path, name):
    choose = random.Random(11)
    for turn in range(8):
        path = tmp_path / f"{turn}{name}"
        tracker = start(*THIS, "--output", path, "--interval", "0.002")
        while not path.exists() or path.stat().st_size < 3000:
            time.sleep(0.001)
        time.sleep(choose.random() * 0.03)
        tracker.kill()
        tracker.wait()
        said = json.loads(harness.execute([harness.COMMAND, "analyze", path, "--format", "json"]).ok().stdout)
        assert said["source"]["samples"] >= 2
        assert len(said["lost"]["reasons"]) <= 1


def test_the_format_follows_the_name_and_all_say_the_same(tmp_path):
    fields = None
    for name in ("t.json", "t.jsonl", "t.csv"):
        path = tmp_path / name
        harness.execute([*TRACK_THIS, "--output", path, "--duration", "0.05", "--interval", "0.01"]).ok()
        if name.endswith(".json"):
            rows = telemetry(path)
        elif name.endswith(".jsonl"):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        else:
            rows = list(csv.DictReader(path.open()))
            assert isinstance(json.loads(rows[0]["metadata"]), dict), "a cell of JSON"
        fields = fields or list(rows[0])
        assert list(rows[0]) == fields and len(fields) == 22
        assert [row["event_type"] for row in rows[:2]] == ["start", "sample"]


def test_a_duration_of_zero_takes_one_sample(tmp_path):
    path = tmp_path / "t.json"
    harness.execute([*TRACK_THIS, "--output", path, "--duration", "0"]).ok()
    assert [e["event_type"] for e in telemetry(path)] == ["start", "sample", "stop"]


def test_samples_keep_coming_where_nothing_changes(tmp_path):
    path = tmp_path / "t.json"
    with standing_program(tmp_path / "r") as _:
        pid = recorded_pid(tmp_path / "r")
        harness.execute([*TRACK, "--pid", pid, "--output", path, "--duration", "0.5", "--interval", "0.05"]).ok()
    samples = of_type(telemetry(path), "sample")
    assert 3 <= len(samples) <= 11
    assert {s["allocator_allocated_bytes"] for s in samples} == {LIVE_BYTES}
    assert {s["allocator_change_bytes"] for s in samples} == {0}, "the first sample is no allocation"


def test_without_a_file_the_first_lines_say_that_nothing_is_kept(tmp_path):
    note = b"Note: samples are not kept: name a file with --output\n"
    one = [*TRACK, "--pid", str(os.getpid()), "--duration", "0"]
    assert harness.execute(one).ok().stdout.splitlines(True)[1] == note
    assert note not in harness.execute([*one, "--output", tmp_path / "t.json"]).ok().stdout


def test_a_recorded_process_shows_its_own_exact_counters(tmp_path):
    path = tmp_path / "t.json"
    with standing_program(tmp_path / "r"):
        pid = recorded_pid(tmp_path / "r")
        done = harness.execute([*TRACK, "--pid", pid, "--output", path, "--duration", "0"]).ok()
        rss = int(open(f"/proc/{pid}/statm").read().split()[1]) * resource.getpagesize()
    assert f"process {pid} " in done.stdout.decode().splitlines()[0]
    (sample,) = of_type(telemetry(path), "sample")
    assert sample["pid"] == pid and sample["allocator_allocated_bytes"] == LIVE_BYTES
    said = sample["metadata"]
    assert said["basis"] == "exact" and said["peak_bytes"] == PEAK_BYTES
    assert (said["alloc_count"], said["free_count"], said["live_blocks"]) == (ALLOCATIONS, 1, 4)
    assert abs(said["rss_bytes"] - rss) < 4 * 2**20, "the kernel's count of the same moment"
    assert 0 <= said["age_seconds"] <= 2
    late = said | {"basis": "recording", "age_seconds": 9.5, "unknown": {"exact": "read 9 s before: reading takes longer than the interval"}}
    samples = [sample | {"timestamp_ns": sample["timestamp_ns"] + i * 10**9, "metadata": late if i == 1 else said} for i in range(3)]
    path.write_text(json.dumps(samples))
    (series,) = harness.analysis(path)["series"]
    assert (series["basis"], series["samples"]) == ("recording", 3), "what is late at times is one series, and not exact"


def test_without_a_pid_the_recorded_processes_are_tracked(tmp_path):
    path = tmp_path / "t.json"
    with standing_program(tmp_path / "r"):
        pid = recorded_pid(tmp_path / "r")
        harness.execute([*TRACK, "--output", path, "--duration", "0"]).ok()
        info = json.loads(harness.execute([harness.COMMAND, "info", "--detailed", "--format", "json"]).ok().stdout)
    mine = [s for s in of_type(telemetry(path), "sample") if s["pid"] == pid]
    assert [s["allocator_allocated_bytes"] for s in mine] == [LIVE_BYTES]
    (listed,) = [r for r in info["recordings"] if r["pid"] == pid]
    assert listed["folder"] == str(tmp_path / "r")
    (cpu,) = listed["devices"]
    assert (cpu["live_bytes"], cpu["peak_bytes"], cpu["live_blocks"]) == (LIVE_BYTES, PEAK_BYTES, 4)


def test_figures_of_a_process_that_ended_before_keep_their_time(tmp_path):
    path = tmp_path / "t.json"
    with standing_program(tmp_path / "r"):
        pid = recorded_pid(tmp_path / "r")
        tracker = start("--output", path, "--interval", "0.05", stdin=subprocess.DEVNULL)
        while not path.exists() or path.stat().st_size < 3000:
            time.sleep(0.01)
    ended_ns = time.time_ns()
    time.sleep(0.5)
    tracker.send_signal(signal.SIGTERM)
    assert tracker.wait(20) == 0, tracker.stderr.read()
    events = telemetry(path)
    stops = [e for e in of_type(events, "stop") if e["pid"] == pid]
    if not stops:
        pytest.skip("another recorded program runs on this machine: the last figures are its own")
    samples = [e for e in of_type(events, "sample") if e["pid"] == pid]
    assert samples[0]["allocator_allocated_bytes"] == LIVE_BYTES
    (stop,) = stops
    for field in ("timestamp_ns", "allocator_allocated_bytes", "allocator_reserved_bytes"):
        assert stop[field] == samples[-1][field]
    assert stop["timestamp_ns"] < ended_ns


def test_a_process_that_is_not_recorded_is_its_rss_and_says_so(tmp_path):
    path = tmp_path / "t.json"
    with standing_program(None, recorded=False) as process:
        harness.execute([*TRACK, "--pid", process.pid, "--output", path, "--duration", "0"]).ok()
        rss = int(open(f"/proc/{process.pid}/statm").read().split()[1]) * resource.getpagesize()
    (sample,) = of_type(telemetry(path), "sample")
    assert sample["metadata"]["basis"] == "process_rss"
    assert abs(sample["allocator_allocated_bytes"] - rss) < 4 * 2**20


def test_tracking_ends_with_the_process(tmp_path):
    path = tmp_path / "t.json"
    with subprocess.Popen(["sleep", "0.5"]) as sleeper:
        done = harness.execute([*TRACK, "--pid", sleeper.pid, "--output", path, "--interval", "0.05"], timeout=20).ok()
    assert b"The process has ended" in done.stdout
    assert telemetry(path)[-1]["event_type"] == "stop"


def test_alerts_come_once_and_not_with_every_sample(tmp_path):
    path = tmp_path / "t.json"
    done = harness.execute([*TRACK_THIS, "--output", path, "--duration", "0.3", "--interval", "0.02",
                            "--warning-threshold", "0.001", "--critical-threshold", "0.002"]).ok()
    events = telemetry(path)
    assert len(of_type(events, "critical")) == 1 and not of_type(events, "warning")
    assert done.stdout.count(b"critical: ") == 1
    assert "threshold is 0.002 %" in of_type(events, "critical")[0]["context"]


def test_the_last_sample_at_a_signal_is_counted_as_analyze_counts_it(tmp_path):
    path = tmp_path / "t.json"
    tracker = start(*THIS, "--output", path, "--interval", "60")
    while not path.exists() or path.stat().st_size == 0:
        time.sleep(0.01)
    tracker.send_signal(signal.SIGTERM)
    out, _ = tracker.communicate(timeout=20)
    assert len(of_type(telemetry(path), "sample")) == 2
    assert b"\n2 samples, highest " in out
    analyzed = json.loads(harness.execute([harness.COMMAND, "analyze", path, "--format", "json"]).ok().stdout)
    assert analyzed["source"]["samples"] == 2


def test_the_identity_comes_from_options_then_from_the_launcher(tmp_path):
    path = tmp_path / "t.json"
    env = {**os.environ, "RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "SLURM_JOB_ID": "77", "SLURM_PROCID": "5",
           "SLURM_NTASKS": "6"}
    env.pop("TORCHELASTIC_RUN_ID", None)
    harness.execute([*TRACK, "--output", path, "--duration", "0"], env=env).ok()
    event = telemetry(path)[0]
    assert [event[k] for k in ("rank", "local_rank", "world_size", "job_id")] == [3, 1, 8, "77"]
    harness.execute([*TRACK, "--output", path, "--duration", "0", "--rank", "4", "--job-id", "mine"], env=env).ok()
    event = telemetry(path)[0]
    assert [event[k] for k in ("rank", "local_rank", "world_size", "job_id")] == [4, 4, 8, "mine"]


def test_a_disk_that_is_full_leaves_what_was_written(tmp_path):
    path = tmp_path / "t.json"

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    done = harness.execute([*TRACK_THIS, "--output", path, "--interval", "0.005"], preexec_fn=small_files, timeout=20)
    assert done.rc == 1 and b"t.json: cannot write" in done.stderr
    assert path.stat().st_size <= 5000
    assert len(of_type(telemetry(path), "sample")) >= 2


def test_a_second_tracker_does_not_take_the_file(tmp_path):
    path = tmp_path / "t.json"
    with start(*THIS, "--output", path) as first:
        while not path.exists() or path.stat().st_size < 100:
            time.sleep(0.005)
        second = harness.execute([*TRACK, "--output", path, "--duration", "0"])
        first.terminate()
    assert second.rc == 2 and b"another tracker is writing it" in second.stderr
    assert len(of_type(telemetry(path), "sample")) >= 2


@pytest.mark.parametrize("options, words", [
    (["--pid", "4194303"], "no process 4194303"),
    (["--interval", "0"], "--interval: '0' is not from 0.001 to 86400"),
    (["--duration", "-1"], "--duration: '-1' is below 0"),
    (["--warning-threshold", "99"], "--warning-threshold is above"),
    (["--rank", "2"], "below --world-size"),
    (["--output", "/nowhere/t.json"], "/nowhere/t.json: cannot write"),
    (["--output", "x.gmp"], "is the name of a recording"),
])
def test_a_mistake_is_one_line(tmp_path, options, words):
    env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "SLURM_PROCID")}
    done = harness.execute([*TRACK, *options], cwd=tmp_path, env=env)
    assert done.rc in (1, 2)
    assert done.stderr.decode().startswith("gpumemprof: ") and done.stderr.count(b"\n") == 1
    assert words in done.stderr.decode()
