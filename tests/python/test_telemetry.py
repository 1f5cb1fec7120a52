"""TelemetryEventV2: what is written is what is read, and no file can do harm."""

import csv
import json
import os
import sys
import warnings
from pathlib import Path

import jsonschema
import pytest
from harness import execute
from telemetry_helpers import event, random_events

from gpumemprof.telemetry import (
    FIELDS_V2,
    TelemetryEventV2,
    TelemetryWriter,
    load_telemetry_events,
    telemetry_event_from_record,
    telemetry_event_to_dict,
    unknown_fields,
    validate_telemetry_record,
    write_events,
)

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/schemas/telemetry-event-v2.schema.json").read_text())
FORMATS = ["json", "jsonl", "csv"]


def stream(path, events, batch=3):
    writer = TelemetryWriter(path)
    for start in range(0, len(events), batch):
        writer.write(events[start : start + batch])
    writer.close()


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("write", [write_events, stream])
def test_what_is_written_is_what_is_read(tmp_path, extension, write):
    events = random_events(seed=7, count=200)
    path = tmp_path / f"events.{extension}"
    write(path, events)
    assert load_telemetry_events(path) == events


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("write", [write_events, stream])
def test_a_file_without_events_is_whole(tmp_path, extension, write):
    path = tmp_path / f"none.{extension}"
    write(path, [])
    assert load_telemetry_events(path) == []
    assert extension != "json" or json.loads(path.read_text()) == []
    assert extension != "csv" or path.read_text().strip() == ",".join(FIELDS_V2)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_stream_is_whole_after_every_write(tmp_path, extension):
    events = random_events(seed=8, count=30)
    path = tmp_path / f"growing.{extension}"
    writer = TelemetryWriter(path)
    for count, one in enumerate(events, 1):
        writer.write([one])
        assert load_telemetry_events(path) == events[:count]
        assert extension != "json" or len(json.loads(path.read_bytes())) == count
    assert (writer.written_events, writer.lost_events, writer.error) == (30, 0, None)


def test_csv_is_what_another_reader_of_csv_reads(tmp_path):
    events = random_events(seed=9, count=50)
    if sys.version_info < (3, 11):  # whose csv refuses the character 0, which some names have
        events = [one for one in events if "\0" not in "".join(map(str, telemetry_event_to_dict(one).values()))]
        assert len(events) > 10
    write_events(tmp_path / "e.csv", events)
    with open(tmp_path / "e.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [tuple(rows[0])] == [FIELDS_V2]
    for row, one in zip(rows, events, strict=True):
        record = telemetry_event_to_dict(one)
        assert json.loads(row.pop("metadata") or "{}") == record.pop("metadata")
        assert row == {key: "" if value is None else str(value) for key, value in record.items()}


def test_csv_takes_large_metadata_and_leaves_the_limit_of_csv_alone(tmp_path):
    one = event(metadata={"large": "x" * 1_000_000})
    limit = csv.field_size_limit()
    write_events(tmp_path / "e.csv", [one])
    assert load_telemetry_events(tmp_path / "e.csv") == [one]
    assert csv.field_size_limit() == limit


def test_records_agree_with_the_published_schema():
    for one in random_events(seed=10, count=100):
        jsonschema.validate(telemetry_event_to_dict(one), SCHEMA)


@pytest.mark.parametrize("field", FIELDS_V2)
@pytest.mark.parametrize(
    "value", [None, True, -1, -2, 0, 1.5, "", "text", [], {}, 2**63, -(2**63), "absent"], ids=lambda v: repr(v)[:12]
)
def test_a_record_is_valid_where_the_schema_says_so(field, value):
    record = telemetry_event_to_dict(event(world_size=4))
    if value == "absent":
        del record[field]
    else:
        record[field] = value
    crosses = field in ("rank", "local_rank") and value == 2**63 or record.get("world_size") == 0
    try:
        validate_telemetry_record(record)
        ours = True
    except ValueError:
        ours = False
    theirs = jsonschema.Draft202012Validator(SCHEMA).is_valid(record)
    assert ours == theirs or crosses


def test_a_key_that_version_2_does_not_have_is_refused():
    with pytest.raises(ValueError, match="not in version 2: session_id"):
        validate_telemetry_record({**telemetry_event_to_dict(event()), "session_id": "s"})


def test_a_rank_outside_of_its_world_is_refused():
    with pytest.raises(ValueError, match="rank 8 must be < world_size 8"):
        event(rank=8, world_size=8)


def test_more_used_than_there_is_stays_as_it_was_said_with_a_note(tmp_path):
    one = event(device_used_bytes=12_000, device_free_bytes=None)
    assert one.device_used_bytes == 12_000
    assert one.metadata == {"notes": ["device_used_bytes exceeds device_total_bytes"]}
    write_events(tmp_path / "e.jsonl", [one])
    assert load_telemetry_events(tmp_path / "e.jsonl") == [one]  # and is noted once


def test_an_event_does_not_change_the_metadata_it_was_given():
    given = {}
    event(device_used_bytes=12_000, metadata=given)
    assert given == {}


def test_a_tracking_event_of_before_is_read():
    record = {
        "timestamp": 1_700_000_000.5, "event_type": "allocation", "memory_allocated": 5 << 20,
        "memory_reserved": 8 << 20, "memory_change": 1 << 20, "device_id": 1, "context": "c", "job_id": "j", "rank": 2, "local_rank": 0,
        "world_size": 4, "metadata": {"k": 1}, "active_memory": 6, "inactive_memory": 7, "device_used": 9,
        "device_free": 10, "device_total": 19, "backend": "cuda",
    }  # fmt: skip
    one = telemetry_event_from_record(record)
    assert one == event(
        timestamp_ns=1_700_000_000_500_000_000, event_type="allocation", collector="gpumemprof.cuda_tracker",
        sampling_interval_ms=0, pid=-1, host="unknown", device_id=1, allocator_allocated_bytes=5 << 20,
        allocator_reserved_bytes=8 << 20, allocator_change_bytes=1 << 20, context="c", job_id="j", rank=2, world_size=4,
        metadata={"k": 1}, allocator_active_bytes=6, allocator_inactive_bytes=7, device_used_bytes=9,
        device_free_bytes=10, device_total_bytes=19,
    )  # fmt: skip


def test_what_an_old_record_does_not_say_is_marked_unknown():
    record = {"timestamp": 5, "type": "mem", "memory_mb": 1.5, "device": "cuda:3", "metadata_k": "v"}
    one = telemetry_event_from_record(record)
    assert (one.timestamp_ns, one.event_type, one.device_id) == (5_000_000_000, "mem", 3)
    assert one.allocator_allocated_bytes == 1.5 * 1024 * 1024
    assert set(unknown_fields(one)) == {"allocator_reserved_bytes", "allocator_change_bytes", "device_used_bytes"}
    assert one.metadata["k"] == "v"
    assert (one.device_total_bytes, one.device_free_bytes) == (None, None)


def test_a_later_version_keeps_its_session_and_its_nulls():
    record = {**telemetry_event_to_dict(event()), "schema_version": 4, "session_id": "s1", "device_used_bytes": None}
    one = telemetry_event_from_record(record)
    assert one.metadata["session_id"] == "s1" and one.metadata["source_schema_version"] == 4
    assert unknown_fields(one) == {"device_used_bytes": "null in version 4"}


@pytest.mark.parametrize(
    "record", [{}, {"timestamp": "x"}, {"schema_version": 9, "timestamp": 1}, {"timestamp": float("nan")}]
)
def test_a_record_without_sense_is_refused(record):
    with pytest.raises(ValueError):
        telemetry_event_from_record(record)


def test_strict_reading_takes_version_2_only():
    with pytest.raises(ValueError, match="missing"):
        telemetry_event_from_record({"timestamp": 1}, permissive_legacy=False)


def test_documents_of_other_shapes_are_read(tmp_path):
    path = tmp_path / "d.json"
    records = [telemetry_event_to_dict(event(pid=n)) for n in range(3)]
    for document, key, count in [
        ({"events": records}, None, 3), ({"mine": records}, "mine", 3), (records[0], None, 1),
        ({"timestamps": [1.0, 2.0], "allocated": [10, 20], "reserved": [30, 40]}, None, 2),
    ]:  # fmt: skip
        path.write_text(json.dumps(document, indent=2))
        assert len(load_telemetry_events(path, events_key=key)) == count
    assert [e.allocator_reserved_bytes for e in load_telemetry_events(path)] == [30, 40]
    path.write_text(json.dumps({"timestamps": [1, 2], "memory_usage": [1.0, 2.5], "events": []}))
    assert [e.allocator_allocated_bytes for e in load_telemetry_events(path)] == [1 << 20, 5 << 19]


def test_csv_of_another_tool_is_read(tmp_path):
    path = tmp_path / "monitor.csv"
    path.write_text("timestamp,allocated,reserved,color\n1.5,1000,2000,red\n2.5,9007199254740993,,\n")
    first, second = load_telemetry_events(path)
    assert (first.allocator_allocated_bytes, first.metadata["color"]) == (1000, "red")
    assert second.allocator_allocated_bytes == 2**53 + 1  # not through a float


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"timestamp": 1, "rss": 5}, {"b": nul}]', r"is not JSON \(at byte 29\)"),
        (b'{"timestamp": 1, "rss": 5}\n{"timestamp": }\n', r"is not JSON \(at byte 27\)"),
        (b'{"timestamp": 1, "rss": 5}\n{"timestamp": "x"}\n', r"'timestamp' is not a number \(at byte 27\)"),
        (b'{"timestamp": 1, "rss": 5}\n{"timestamp": 2}\n', r"'allocator_allocated_bytes' is missing \(at byte 27\)"),
        (b'[{"timestamp": 1, "rss": 5, "rank": 2, "world_size": 2}]', r"'rank' is not within world_size \(at byte 1\)"),
        (b"timestamp,allocated\n1,2\n3\n", r"a row of 1 cells under 2 columns \(at byte 24\)"),
        (b"timestamp,allocated\n1,2\n3,\xff\n", r"'allocated' is not a number \(at byte 24\)"),
        (b"some text\n", r"is not .* a tracker's file .*\(at byte 0\)"),
        (b"[" * 100_000, r"expected a record, .* \(at byte 1\)"),
        (b'[{"metadata":' + b"[" * 100_000, r"nested too deeply .*\(at byte 76\)"),
        (b'[{"timestamp": NaN}]', r"is not JSON \(at byte 1\)"),
        (b'{"timestamp": ' + b"9" * 5000 + b"}", r"\(at byte 0\)"),
        (b"\x80\x04\x95", r"is not .* a tracker's file .*\(at byte 0\)"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line_with_the_byte(tmp_path, content, message):
    path = tmp_path / "damaged"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        load_telemetry_events(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_of_a_list_under_a_key_and_of_version_2_alone(tmp_path):
    path = tmp_path / "d.json"
    records = [telemetry_event_to_dict(event(pid=n)) for n in range(2)]
    path.write_text(json.dumps({"mine": records}))
    with pytest.raises(ValueError, match="has no list under the key 'events'"):
        load_telemetry_events(path, events_key="events")
    assert [e.pid for e in load_telemetry_events(path, permissive_legacy=False, events_key="mine")] == [0, 1]
    path.write_text(json.dumps([{**records[0], "session_id": "s"}]))
    assert load_telemetry_events(path)[0].metadata == {"session_id": "s"}
    with pytest.raises(ValueError, match=r"'session_id' is not in version 2 \(at byte 1\)"):
        load_telemetry_events(path, permissive_legacy=False)
    path.write_text('[{"timestamp": 1, "rss": 5}]')
    with pytest.raises(ValueError, match="is missing"):
        load_telemetry_events(path, permissive_legacy=False)


def test_a_file_that_a_tracker_writes_is_not_written_by_another(tmp_path):
    writer = TelemetryWriter(tmp_path / "e.jsonl")
    writer.write([event(pid=1)])
    with pytest.raises(ValueError, match="another tracker is writing it"):
        TelemetryWriter(tmp_path / "e.jsonl")
    writer.close()
    assert len(load_telemetry_events(tmp_path / "e.jsonl")) == 1


@pytest.mark.parametrize("extension", FORMATS)
def test_a_file_cut_at_any_byte_gives_its_first_events_or_an_error(tmp_path, extension):
    events = [event(pid=n, context="a,\"b\"", metadata={"n": n}) for n in range(3)]
    stream(tmp_path / f"e.{extension}", events, batch=1)
    whole = (tmp_path / f"e.{extension}").read_bytes()
    cut = tmp_path / "cut"
    for size in range(len(whole)):
        cut.write_bytes(whole[:size])
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                read = load_telemetry_events(cut)
        except ValueError:
            continue
        assert read == events[: len(read)]
        # Events may only be missing without a word where the cut is between two lines, which no reader can tell.
        assert said or len(read) == 3 or b"\n" in (whole[size - 1 : size], whole[size : size + 1]) or size == 0


@pytest.mark.parametrize("extension", FORMATS)
def test_a_flipped_byte_never_ends_in_anything_but_events_or_an_error(tmp_path, extension):
    stream(tmp_path / f"e.{extension}", [event(pid=n, metadata={"n": n}) for n in range(2)], batch=1)
    whole = bytearray((tmp_path / f"e.{extension}").read_bytes())
    flipped = tmp_path / "flipped"
    for place in range(len(whole)):
        for bit in (0x01, 0x20, 0x80):
            whole[place] ^= bit
            flipped.write_bytes(whole)
            whole[place] ^= bit
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    read = load_telemetry_events(flipped)
            except ValueError:
                continue
            assert all(isinstance(one, TelemetryEventV2) for one in read)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_full_disk_costs_events_and_says_so_but_not_the_file(tmp_path, extension):
    program = f"""
import json, resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from telemetry_helpers import event
from gpumemprof.telemetry import TelemetryWriter, load_telemetry_events
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a limit on the file's size fails as a full disk does, half way
writer = TelemetryWriter(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
for n in range(50):
    writer.write([event(pid=n)])
read = load_telemetry_events(sys.argv[1])
print(json.dumps([writer.written_events, writer.lost_events, writer.error, [e.pid for e in read]]))
"""
    done = execute([sys.executable, "-c", program, tmp_path / f"e.{extension}"]).ok()
    written, lost, error, pids = json.loads(done.stdout)
    assert written + lost == 50 and lost > 0 and "File too large" in error
    assert pids == list(range(written)) and written > 0


def test_a_forked_child_does_not_write_into_the_files_of_its_parent(tmp_path):
    path = tmp_path / "e.jsonl"
    writer = TelemetryWriter(path)
    writer.write([event(pid=1)])
    child = os.fork()
    if child == 0:
        writer.write([event(pid=2)])
        writer.close()
        os._exit(0)
    os.waitpid(child, 0)
    writer.write([event(pid=3)])
    assert [e.pid for e in load_telemetry_events(path)] == [1, 3]


def test_metadata_that_json_cannot_say_is_written_as_text(tmp_path):
    loop = []
    loop.append(loop)
    write_events(tmp_path / "e.json", [event(metadata={"nan": float("nan"), "path": Path("a"), 3: {1}, "loop": loop})])
    (read,) = load_telemetry_events(tmp_path / "e.json")
    assert (read.metadata["nan"], read.metadata["path"], read.metadata["3"]) == (None, "a", [1])


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Unsupported format: excel"):
        write_events(tmp_path / "e.json", [], format="excel")
