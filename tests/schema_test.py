"""What the command prints is what docs/schemas promises, and the schemas can say no."""
import copy
import csv
import io
import json
import time

import harness
import jsonschema
import nested
import pytest

SCHEMAS = harness.ROOT / "docs" / "schemas"

PROGRAM = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1000))
    def forward(self, x):
        return (x * self.weight).relu().sum()
net = Net()
for _ in range(3):
    net(torch.ones(50, 1000)).backward()
"""


def validator(name):
    schema = json.loads((SCHEMAS / name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    program = folder / "net.py"
    program.write_text(PROGRAM)
    return nested.record(folder / "recording", [harness.PYTHON, program]).ok().folder


@pytest.fixture(scope="module")
def analysis(recording):
    return harness.analysis(recording)


def test_the_analysis_of_a_real_program_follows_its_schema(analysis):
    validator("analysis.schema.json").validate(analysis)
    assert analysis["devices"][0]["peak"]["requested_bytes"] >= 50 * 1000 * 4


def test_the_analysis_of_host_blocks_follows_its_schema(tmp_path):
    text = "blocks = [bytearray(1 << 20) for _ in range(20)]"
    report = harness.analysis(harness.record(tmp_path / "r", [harness.PYTHON, "-c", text], ["--host"]).ok().folder)
    validator("analysis.schema.json").validate(report)
    assert {device["framework"] for device in report["devices"]} == {"host"}


def test_the_peak_has_the_same_moment_on_both_clocks(analysis):
    """`_ns` is the monotonic clock of the events, `_us` the wall clock"""
    peak = analysis["devices"][0]["peak"]
    assert peak["time_ns"] < time.monotonic_ns() and abs(peak["time_us"] / 1e6 - time.time()) < 3600
    assert abs((time.time_ns() - time.monotonic_ns()) // 1000 + peak["time_ns"] // 1000 - peak["time_us"]) < 1_000_000


def test_every_null_of_a_device_has_a_reason(analysis):
    def nulls(value, path=""):
        if value is None:
            yield path
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from nulls(item, f"{path}.{key}" if path else key)

    for device in analysis["devices"]:
        device = copy.deepcopy(device)
        reasons = device.pop("unknown")
        for path in nulls(device):
            key = path.rsplit(".", 1)[-1]
            # An event and its moment are unknown for the reason that their figure is.
            assert {path, key} & reasons.keys() or key in ("event_index", "time_us"), path


def values_of(value, key):
    """Every value that `key` has anywhere in it."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == key:
                yield item
            yield from values_of(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from values_of(item, key)


@pytest.mark.parametrize("path", sorted((harness.ROOT / "tests" / "fixtures" / "allocator").glob("*.pickle")), ids=lambda p: p.stem)
def test_only_what_is_null_has_a_reason(path):
    for device in harness.analysis(path)["devices"]:
        for key in device.pop("unknown"):
            values = list(values_of(device, key.rsplit(".", 1)[-1]))
            assert not values or None in values, key


@pytest.mark.parametrize(
    "damage",
    [
        lambda doc: doc.pop("lost"),
        lambda doc: doc.update(schema="gpumemprof.analysis/2"),
        lambda doc: doc["devices"][0].pop("peak"),
        lambda doc: doc["devices"][0]["peak"].update(requested_bytes=-1),
        lambda doc: doc["devices"][0]["events"].pop("oom"),
        lambda doc: doc["devices"][0]["holders_at_peak"][0].update(stack="a.py:1 f"),
        lambda doc: doc.update(score={"value": None, "parts": {}}),
    ],
)
def test_the_schema_refuses_what_breaks_the_contract(analysis, damage):
    broken = copy.deepcopy(analysis)
    damage(broken)
    assert not validator("analysis.schema.json").is_valid(broken)


def test_every_exported_event_follows_its_schema(recording):
    check = validator("event.schema.json")
    events = harness.events(recording)
    assert events
    for event in events:
        check.validate(event)
    assert not check.is_valid({**events[0], "action": "allocate"})


def test_csv_and_json_lines_tell_the_same(recording):
    done = harness.execute([harness.COMMAND, "export", recording, "--to", "csv"]).ok()
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    events = harness.events(recording)
    assert len(rows) == len(events)
    for row, event in zip(rows, events):
        known = {key: value for key, value in row.items() if value != ""}
        stack = event.pop("stack", [])
        assert known.pop("stack", "") == ";".join(stack)
        assert known == {key: str(value) for key, value in event.items()}
    columns = json.loads((SCHEMAS / "event.schema.json").read_text())["properties"]
    assert list(rows[0]) == list(columns)


def test_the_report_agrees_with_the_exported_events(recording, analysis):
    """The peak of every device, counted again from the exported events."""
    live, level, peak = {}, {}, {}
    for event in harness.events(recording):
        place = (event["process"], event["device"])
        block = (*place, event.get("address"))
        if event["action"] == "alloc":
            live[block] = event["size_bytes"]
            level[place] = level.get(place, 0) + event["size_bytes"]
            peak[place] = max(peak.get(place, 0), level[place])
        elif event["action"].startswith("free"):
            level[place] = level.get(place, 0) - live.pop(block, 0)
    for device in analysis["devices"]:
        place = (device["process"], device["device"])
        figures = device["peak"]
        reported = figures["requested_bytes"] if figures["basis"] == "requested" else figures["allocated_bytes"]
        assert reported == peak.get(place, 0)
        assert sum(holder["bytes"] for holder in device["holders_at_peak"]) == reported
        assert max(device["timeline"]["max_bytes"]) == reported
