"""A server under --max-disk that answered, and then idles: what was dropped before it was read is in every figure of now."""
import contextlib
import json
import subprocess
import time

import harness
import pytest
from commands.programs_for_commands import recorded_pid
from live_helpers import picture, serving

ALLOCATIONS, EVENTS = 21, 41  # of a request: 20 tensors that come and go, one that stays


@contextlib.contextmanager
def answering(folder, *options):
    """Yields a function that has so many requests answered, and tells what the program keeps then."""
    argv = harness.run_argv(folder, [harness.PYTHON, harness.PROGRAMS / "thread_a_request.py"], options)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        def answer(requests):
            run.stdin.write(f"{requests}\n")
            run.stdin.flush()
            return json.loads(run.stdout.readline())
        yield answer
        run.stdin.close()
        assert run.wait(120) == 0
        answer.said = run.stderr.read()


def has_dropped(folder):
    def is_true():
        said = harness.execute([harness.COMMAND, "analyze", folder, "--format", "json"]).ok().stdout
        return json.loads(said)["source"]["events_read"] < json.loads(said)["devices"][0]["events"]["alloc"]
    return harness.until(is_true, 60)


def sample_after(path, time_ns):
    """The first sample of a tracker whose figures were read later; None while there is none."""
    for line in path.read_text().splitlines() if path.exists() else ():
        event = json.loads(line)
        if event["event_type"] == "sample" and event["timestamp_ns"] - event["metadata"]["age_seconds"] * 1e9 > time_ns:
            return event
    return None


def test_events_that_were_dropped_before_they_were_read_are_in_every_figure(tmp_path):
    pytest.importorskip("torch")
    folder, samples = tmp_path / "r", tmp_path / "samples.jsonl"
    bytes_now = ("gpumemprof_recording_allocated_bytes", "cpu")
    with serving() as server, answering(folder, "--max-disk", "150KB") as answer:
        first = answer(100)
        pid = recorded_pid(folder)
        assert harness.until(lambda: server.metrics(pid=pid).get(bytes_now) == first["bytes"])
        tracker = [harness.COMMAND, "track", "--pid", str(pid), "--interval", "1", "-o", samples]
        with subprocess.Popen(tracker, stdout=subprocess.DEVNULL) as track:
            try:
                assert harness.until(lambda: sample_after(samples, 0))
                said = answer(900)
                assert has_dropped(folder), "or this proves nothing"
                found = server.metrics(pid=pid)  # which nobody asked for meanwhile
                since = time.time_ns()
                sample = harness.until(lambda: sample_after(samples, since))
            finally:
                track.terminate()
        (shown,) = [r for r in picture("--interval", "0.2")["recordings"] if r["pid"] == pid]
        info = harness.execute([harness.COMMAND, "info", "--detailed", "--format", "json"]).ok().stdout
        (told,) = [r for r in json.loads(info)["recordings"] if r["pid"] == pid]
    assert said == {"blocks": 1000, "bytes": 1000 * 32_768}
    assert found[bytes_now] == said["bytes"]
    assert found["gpumemprof_recording_live_blocks", "cpu"] == said["blocks"]
    assert found["gpumemprof_recording_events_total", None] == 1000 * EVENTS
    assert (found["gpumemprof_recording_exact", None], found["gpumemprof_recording_lost_events", None]) == (1, 0)
    assert 0 <= found["gpumemprof_recording_age_seconds", None] <= 2
    assert sample["allocator_allocated_bytes"] == said["bytes"] and sample["metadata"]["alloc_count"] == 1000 * ALLOCATIONS
    for event in map(json.loads, samples.read_text().splitlines()):
        if event["event_type"] == "sample":
            assert (event["metadata"]["basis"] == "exact") == (event["metadata"]["age_seconds"] <= 2)
    assert shown["devices"][0]["allocated_bytes"] == told["devices"][0]["live_bytes"] == said["bytes"]
    for device in (shown["devices"][0], told["devices"][0]):
        assert device["alloc_count"] == 1000 * ALLOCATIONS


def test_only_what_lasts_counts_against_the_limit(tmp_path):
    """Buffers and uncompressed events of a thread a request take ten times the limit; what stays of them has room in it."""
    pytest.importorskip("torch")
    whole, limited = tmp_path / "whole", tmp_path / "limited"
    for folder, options in ((whole, ()), (limited, ("--max-disk", "1MiB"))):
        with answering(folder, *options) as answer:
            for _ in range(6):
                answer(150)
                time.sleep(0.3)
    (of_whole,) = whole.glob("*.gmp")
    assert of_whole.stat().st_size < 400_000, "or this proves nothing"
    analysis = harness.analysis(limited)
    assert analysis["source"]["events_read"] == 900 * (EVENTS + 1), "what is kept goes when the program ends"
    assert analysis["lost"]["events"] == 0
    assert "dropped" not in json.dumps(analysis["lost"])
    (of_limited,) = limited.glob("*.gmp")
    assert of_limited.stat().st_size < 400_000
    assert sum(f.stat().st_blocks * 512 for f in limited.iterdir()) < 2**20
    assert [f["kind"] for f in analysis["findings"]] == [f["kind"] for f in harness.analysis(whole)["findings"]]


def test_a_limit_below_what_is_live_is_told(tmp_path):
    pytest.importorskip("torch")
    with answering(tmp_path / "r", "--max-disk", "20KB") as answer:
        answer(700)
        said = answer
    assert "--max-disk is too small: what is live at the end and the names alone take" in said.said
    analysis = harness.analysis(tmp_path / "r")
    (device,) = analysis["devices"]
    assert (device["peak"]["requested_bytes"], device["events"]["alloc"]) == (700 * 32_768, 700 * ALLOCATIONS)
