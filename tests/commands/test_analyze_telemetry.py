"""gpumemprof analyze on samples: reads what trackers write, as Python's own json and csv would write it."""
import csv
import json
import subprocess

import harness
import jsonschema
import nested
import pytest
from carried_page import CarriedPage, has_no_network

SCHEMAS = harness.ROOT / "docs" / "schemas"
MIB = 2**20
FIELDS = ["schema_version", "timestamp_ns", "event_type", "collector", "sampling_interval_ms", "pid", "host", "job_id", "rank",
          "local_rank", "world_size", "device_id", "allocator_allocated_bytes", "allocator_reserved_bytes",
          "allocator_active_bytes", "allocator_inactive_bytes", "allocator_change_bytes", "device_used_bytes",
          "device_free_bytes", "device_total_bytes", "context", "metadata"]


def event(second, allocated, **more):
    values = dict.fromkeys(FIELDS) | {
        "schema_version": 2, "timestamp_ns": (1_700_000_000 + second) * 10**9, "event_type": "sample",
        "collector": "gpumemprof.cuda_tracker", "sampling_interval_ms": 1000, "pid": 7, "host": "h", "rank": 0, "local_rank": 0,
        "world_size": 1, "device_id": 0, "allocator_allocated_bytes": allocated, "allocator_reserved_bytes": allocated + MIB,
        "allocator_change_bytes": 0, "device_used_bytes": allocated + 5 * MIB, "device_free_bytes": 0,
        "device_total_bytes": 1000 * MIB, "metadata": {"a": "b,\"c\""}}
    return values | more


LEAK = [event(s, (100 + 5 * s) * MIB) for s in range(40)]


def validator(name):
    schema = json.loads((SCHEMAS / name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def analyze(path, *options):
    return harness.execute([harness.COMMAND, "analyze", path, *options])


def said_of(path, *options):
    said = json.loads(analyze(path, "--format", "json", *options).ok().stdout)
    validator("analysis.schema.json").validate(said)
    return said


def write(path, events):
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(e | {"metadata": json.dumps(e["metadata"])} for e in events)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(e) + "\n" for e in events))
    else:
        path.write_text(json.dumps(events, indent=2))
    return path


@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.csv", "no-extension"])
def test_every_format_gives_the_same_answer(tmp_path, name):
    said = said_of(write(tmp_path / name, LEAK))
    (series,) = said["series"]
    assert (series["samples"], series["pid"], series["device_id"]) == (40, 7, 0)
    assert series["allocated"]["highest_sample_bytes"] == (100 + 5 * 39) * MIB
    assert series["allocated"]["mean_bytes"] == sum(e["allocator_allocated_bytes"] for e in LEAK) // 40
    assert series["allocated"]["highest_sample_time_us"] == (1_700_000_000 + 39) * 10**6
    assert series["gap_bytes"] == {"least": 4 * MIB, "most": 4 * MIB}, "used - reserved"
    assert said["source"]["end_ns"] - said["source"]["start_ns"] == 39 * 10**9
    (finding,) = said["findings"]
    assert finding["kind"] == "monotonic_increase"
    assert finding["evidence"]["bytes_per_second"] == pytest.approx(5 * MIB)


@pytest.mark.parametrize("used, words", [
    (lambda allocated: allocated + 5 * MIB, "all processes use at most 30.0 % of 1000 MiB"),
    (lambda allocated: None, "allocated or reserved at most 29.6 % of 1000 MiB"),
])
def test_the_share_of_the_memory_says_whose_it_is(tmp_path, used, words):
    """295 MiB are allocated and 296 MiB reserved at the last sample of 1,000 MiB."""
    events = [one | {"schema_version": 3, "device_used_bytes": used(one["allocator_allocated_bytes"])} for one in LEAK]
    assert words in analyze(write(tmp_path / "t.jsonl", events)).ok().stdout.decode()


def test_a_score_needs_samples(tmp_path):
    for events in ([], LEAK[:3]):
        said = said_of(write(tmp_path / "t.json", events))
        assert said["score"]["value"] is None and said["score"]["reason"]
        assert b"Score: none, because" in analyze(tmp_path / "t.json").ok().stdout


def test_processes_and_ranks_are_series_of_their_own(tmp_path):
    flat = [event(s, 50 * MIB, pid=8, rank=1, world_size=2) for s in range(40)]
    mixed = [e for pair in zip(LEAK, flat) for e in pair]
    said = said_of(write(tmp_path / "t.json", mixed))
    assert [(s["pid"], len(s["patterns"])) for s in said["series"]] == [(7, 1), (8, 0)]
    assert [f["series"] for f in said["findings"]] == [0]
    assert said["score"]["value"] == said["series"][0]["score"]["value"] < said["series"][1]["score"]["value"] == 10


def test_smaller_sensitivity_finds_less_growth(tmp_path):
    path = write(tmp_path / "t.json", [event(s, 100 * MIB + s * MIB // 25) for s in range(50)])
    assert not said_of(path)["findings"]
    assert [f["kind"] for f in said_of(path, "--sensitivity", "0.01")["findings"]] == ["monotonic_increase"]
    assert analyze(path, "--sensitivity", "0").rc == 2


def charts(page):
    return [part for section in page.files[0]["document"]["sections"] for part in section["parts"] if part["kind"] == "chart"]


def test_the_page_has_a_line_of_the_samples(tmp_path):
    path = write(tmp_path / "t.json", LEAK)
    done = analyze(path, "--visualization", "--plot-dir", tmp_path / "p" / "q").ok()
    assert f"Wrote {tmp_path}/p/q/memory_timeline.html" in done.stdout.decode()
    (written,) = (tmp_path / "p" / "q").iterdir()
    page = CarriedPage(written.read_text())
    assert page.files[0]["kind"] == "samples" and page.files[0]["devices"] == []
    (chart,) = charts(page)
    allocated = chart["lines"][0]
    assert allocated["name"] == "allocated" and allocated["bytes"] == [one["allocator_allocated_bytes"] for one in LEAK], "a point a sample"
    assert [b - a for a, b in zip(allocated["times_s"], allocated["times_s"][1:])] == pytest.approx([1.0] * 39)
    again = tmp_path / "again"
    analyze(path, "--visualization", "--plot-dir", again).ok()
    assert (again / written.name).read_bytes() == written.read_bytes()
    has_no_network(page)


def test_no_line_of_nothing(tmp_path):
    page = CarriedPage(analyze(write(tmp_path / "t.json", []), "--format", "html").ok().stdout)
    assert charts(page) == [] and "Findings" in page.text


def test_the_page_holds_no_markup_of_the_file(tmp_path):
    evil = [event(s, MIB, metadata={"command": "<script>alert(1)</script>\x1b[31m"}) for s in range(10)]
    done = analyze(write(tmp_path / "t.json", evil), "--output", tmp_path / "r.html").ok()
    page = CarriedPage((tmp_path / "r.html").read_text())
    harmless = CarriedPage(analyze(write(tmp_path / "h.json", LEAK), "--format", "html").ok().stdout)
    assert page.frame == harmless.frame and "\x1b" not in page.frame
    assert "<script>alert(1)</script>" in page.text, "as data"
    assert "\x1b" not in analyze(tmp_path / "t.json").ok().stdout.decode() and done.stdout == b""


def test_a_cut_file_says_what_is_lost(tmp_path):
    path = write(tmp_path / "t.json", LEAK)
    text = path.read_text()
    path.write_text(text[: len(text) - 200])
    said = said_of(path)
    assert said["source"]["events"] == 39 and said["lost"]["bytes"] > 0
    assert b"LOST: the last record is cut short" in analyze(path).ok().stdout


@pytest.mark.parametrize("text, offset, words", [
    ("[1]", 1, "expected a record"),
    ('[{"timestamp": 1, "memory_allocated": -2}]', 1, "'memory_allocated' is negative"),
    ("timestamp_ns,allocated\n1,2\n3\n", 27, "a row of 1 cells under 2 columns"),
])
def test_a_bad_file_is_one_line_with_its_byte(tmp_path, text, offset, words):
    path = tmp_path / "bad.json"
    path.write_text(text)
    done = analyze(path)
    assert done.rc == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1
    line = done.stderr.decode()
    assert line.startswith(f"gpumemprof: {path}: ") and words in line and line.endswith(f"(at byte {offset})\n")


READABLE = ("; these can be read: recordings of run, PyTorch's memory snapshots, TensorFlow's profiles and memory dumps, "
            "JAX's memory profiles, and what track, monitor and diagnose write")  # fmt: skip


@pytest.mark.parametrize("text, words", [
    ("hello", "is not a recording, a snapshot or a tracker's file" + READABLE),
    ("import os, sys\nprint(1)\n", "is not a recording, a snapshot or a tracker's file" + READABLE),
    ("a,b\n1,2\n", "is not a recording, a snapshot or a tracker's file (a table without a column timestamp_ns)" + READABLE),
    ("", "is empty"),
])
def test_what_is_no_file_of_samples_says_what_can_be_read_and_no_byte(tmp_path, text, words):
    path = tmp_path / "bad.json"
    path.write_text(text)
    done = analyze(path)
    assert (done.rc, done.stderr.decode()) == (2, f"gpumemprof: {path}: {words}\n")


def test_truncated_and_flipped_files_never_crash(tmp_path):
    path, good = tmp_path / "t.json", json.dumps(LEAK[:2]).encode()
    for position in range(0, len(good), 7):
        for data in (good[:position], good[:position] + bytes([good[position] ^ 0x41]) + good[position + 1:]):
            path.write_bytes(data)
            done = subprocess.run([harness.COMMAND, "analyze", path], capture_output=True, check=False)
            assert done.returncode in (0, 2), (position, done)


def test_the_timeline_of_a_recording_is_drawn_too(tmp_path):
    folder = nested.record(tmp_path / "r", [harness.PYTHON, "-c", "import torch; x = torch.ones(1 << 20)"]).ok().folder
    done = analyze(folder, "--visualization", "--plot-dir", tmp_path / "p").ok()
    assert b"Wrote " in done.stdout
    page = CarriedPage((tmp_path / "p" / "memory_timeline.html").read_text())
    (device,) = [one for one in page.files[0]["devices"] if one["is_main"]]
    assert device["peak"]["bytes"] == 4 << 20
