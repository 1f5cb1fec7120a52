"""What Python says of a file, of this machine and of an alarm is what the command says: both ask the core."""

import json
import subprocess

import harness
import pytest

from gpumemprof import load_telemetry_events
from gpumemprof._host_memory import HostMemory
from gpumemprof.alerts import Alarm, Level

MIB = 1 << 20
# A field that samples have somewhere, what one of it is, and the figure that it is.
FIELDS = [
    ("rss_bytes", 1, "allocated"), ("rss", 1, "allocated"), ("allocated_bytes", 1, "allocated"),
    ("gpu_memory_mb", MIB, "allocated"), ("allocated_mb", MIB, "allocated"), ("memory_mb", MIB, "allocated"),
    ("memory_allocated", 1, "allocated"), ("reserved_bytes", 1, "reserved"), ("gpu_memory_reserved_mb", MIB, "reserved"),
    ("used_bytes", 1, "device_used"),
]  # fmt: skip
IN_PYTHON = {
    "allocated": "allocator_allocated_bytes", "reserved": "allocator_reserved_bytes", "device_used": "device_used_bytes",
}  # fmt: skip


@pytest.mark.parametrize("extension", ["jsonl", "csv"])
@pytest.mark.parametrize(("name", "unit_bytes", "figure"), FIELDS)
def test_a_file_of_any_tracker_has_the_same_figures(tmp_path, name, unit_bytes, figure, extension):
    path = tmp_path / f"samples.{extension}"
    rows = [{"timestamp": 1_700_000_000 + n, name: 1000 + n} for n in range(5)]
    if extension == "csv":
        path.write_text(f"timestamp,{name}\n" + "".join(f"{row['timestamp']},{row[name]}\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = [(1000 + n) * unit_bytes for n in range(5)]
    events = load_telemetry_events(path)
    assert [getattr(event, IN_PYTHON[figure]) for event in events] == expected
    assert IN_PYTHON[figure] not in events[0].metadata["unknown"]
    done = harness.execute([harness.COMMAND, "analyze", path, "--format", "json"]).ok()
    (series,) = json.loads(done.stdout)["series"]
    assert series["samples"] == 5 and series[figure]["highest_sample_bytes"] == expected[-1]


@pytest.mark.parametrize("text", ["[1]", '[{"timestamp": 1, "memory_allocated": -2}]', '{"timestamp": 1}\n', "hello"])
def test_a_bad_file_is_refused_in_the_same_words(tmp_path, text):
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        load_telemetry_events(path)
    done = harness.execute([harness.COMMAND, "analyze", path])
    assert done.stderr.decode() == f"gpumemprof: {refused.value}\n"


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
