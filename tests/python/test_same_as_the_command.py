"""What Python says of a file, of this machine and of an alarm is what the command says: both ask the core."""

import json
import subprocess

import harness
import pytest

from gpumemprof import load_telemetry_events
from gpumemprof._counting.host_memory import HostMemory
from gpumemprof.alerts import Alarm, Level

MIB = 1 << 20
# A field that samples have somewhere, what one of it is, the event's field that it is, and where the command says it.
_ALLOCATED = ("allocator_allocated_bytes", lambda series: series["allocated"]["highest_sample_bytes"])
_RESERVED = ("allocator_reserved_bytes", lambda series: series["peak_reserved_bytes"])
_USED = ("device_used_bytes", lambda series: series["peak_used_bytes"])
FIELDS = [
    ("rss_bytes", 1, _ALLOCATED), ("rss", 1, _ALLOCATED), ("allocated_bytes", 1, _ALLOCATED),
    ("gpu_memory_mb", MIB, _ALLOCATED), ("allocated_mb", MIB, _ALLOCATED), ("memory_mb", MIB, _ALLOCATED),
    ("memory_allocated", 1, _ALLOCATED), ("reserved_bytes", 1, _RESERVED), ("gpu_memory_reserved_mb", MIB, _RESERVED),
    ("used_bytes", 1, _USED),
]  # fmt: skip


@pytest.mark.parametrize("extension", ["jsonl", "csv"])
@pytest.mark.parametrize(("name", "unit_bytes", "where"), FIELDS, ids=[field[0] for field in FIELDS])
def test_a_file_of_any_tracker_has_the_same_figures(tmp_path, name, unit_bytes, where, extension):
    path = tmp_path / f"samples.{extension}"
    also = {} if where is _ALLOCATED else {"allocated": 7}  # without it the command has nothing to analyze
    rows = [{"timestamp": 1_700_000_000 + n, name: 1000 + n, **also} for n in range(5)]
    if extension == "csv":
        lines = [",".join(map(str, row)) for row in [rows[0].keys(), *(row.values() for row in rows)]]
        path.write_text("".join(line + "\n" for line in lines))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = [(1000 + n) * unit_bytes for n in range(5)]
    field, in_command = where
    events = load_telemetry_events(path)
    assert [getattr(event, field) for event in events] == expected
    assert field not in events[0].metadata["unknown"]
    done = harness.execute([harness.COMMAND, "analyze", path, "--format", "json"]).ok()
    (series,) = json.loads(done.stdout)["series"]
    assert in_command(series) == expected[-1]


@pytest.mark.parametrize("text", ["[1]", '[{"timestamp": 1, "memory_allocated": -2}]', '{"timestamp": 1}\n', "hello"])
def test_a_bad_file_is_refused_in_the_same_words(tmp_path, text):
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        load_telemetry_events(path)
    done = harness.execute([harness.COMMAND, "analyze", path])
    words, byte = str(refused.value).rsplit(" (", 1)
    said = done.stderr.decode()
    # Of a file of no kind that it knows the command says what it reads, and no byte.
    assert said.startswith(f"gpumemprof: {words}")
    assert ("these can be read" in said) != said.endswith(f" ({byte}\n")


def test_the_machine_has_the_same_memory():
    """`info` gives the parts; what counts is the cgroup where it leaves less room than the machine has."""
    done = subprocess.run([harness.COMMAND, "info", "--format", "json"], capture_output=True, check=True)
    memory = json.loads(done.stdout)["memory"]
    total, limit = memory["total_bytes"], memory.get("cgroup_limit_bytes")
    found = HostMemory().read()
    assert found is not None
    if found.limit == "machine":
        assert found.total_bytes == total
    else:
        assert found.total_bytes == limit < total


def test_an_alarm_pauses_for_a_minute_as_the_commands_do():
    alarm = Alarm([Level("warning", 0.8)])
    series = [(0, 0.9), (10, 0.1), (20, 0.9), (59.9, 0.9), (60, 0.9)]
    assert [time_s for time_s, value in series if alarm.update(time_s, value)] == [0, 60]
