"""Patterns with their periods, the score, and --fail-on: programs whose shape is known."""
import json
import sys

import harness
import nested
import pytest
from recorded_steps import record_steps

pytest.importorskip("torch")

# 60 rounds of a rise of 8 MiB over a floor of 4 MiB, by no optimizer: steps are not told.
SAWTOOTH = """
import time, torch
floor = torch.empty(4 * 2**20, dtype=torch.uint8)
for _ in range(60):
    parts = [torch.empty(2**20, dtype=torch.uint8) for _ in range(8)]
    time.sleep(0.01)
    del parts
    time.sleep(0.01)
"""

# Each of 40 steps keeps 1 MiB more.
GROWING = """
import torch
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
for _ in range(40):
    model(torch.ones(64, 512)).sum().backward()
    kept.append(torch.empty(2**20, dtype=torch.uint8))
    optimizer.step()
    optimizer.zero_grad()
"""

SPREAD = """
import torch
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
for step in range(40):
    model(torch.ones(64, 512)).sum().backward()
    exec(compile("kept.append(torch.empty(2**20, dtype=torch.uint8))", f"part{step}.py", "exec"))
    optimizer.step()
    optimizer.zero_grad()
"""

FLAT = """
import torch
kept = torch.empty(2**20, dtype=torch.uint8)
for _ in range(50):
    torch.ones(100)
"""


def recorded(folder, text):
    program = folder / "program.py"
    program.write_text(text)
    return nested.record(folder / "recording", [sys.executable, program]).ok().folder


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("growing"), GROWING)


def found(folder, kind):
    said = harness.analysis(folder)
    return said, [f for f in said["findings"] if f["kind"] == kind]


def fail_on(folder, conditions):
    return harness.execute([harness.COMMAND, "analyze", folder, "--format", "json", "--fail-on", conditions])


def test_a_sawtooth_without_steps_has_its_period_in_seconds(tmp_path):
    said, (sawtooth,) = found(recorded(tmp_path, SAWTOOTH), "sawtooth")
    evidence = sawtooth["evidence"]
    assert sawtooth["severity"] == "info"
    assert evidence["amplitude_bytes"] == sawtooth["bytes"] == 8 * 2**20
    # Rounds that began in the first fifth of the time are left out; how long each took is the machine's.
    assert 40 <= evidence["cycles"] <= 60
    starts = [e["time_ns"] for e in harness.events(tmp_path / "recording") if e.get("size_bytes") == 2**20
              and e["action"] == "alloc"][7::8]
    gaps = [later - earlier for earlier, later in zip(starts, starts[1:])]
    assert min(gaps) <= evidence["period_ns"] <= max(gaps)
    (device,) = [d for d in said["devices"] if d["device"] == "cpu"]
    assert [p["pattern_type"] for p in device["patterns"]] == ["sawtooth"]


def test_spikes_of_some_steps_have_their_period_in_steps(tmp_path):
    _, (spike,) = found(record_steps(tmp_path), "spike")
    evidence = spike["evidence"]
    assert (evidence["count"], evidence["period_steps"]) == (4, 10), "the first, in the warm-up, comes as regularly"
    assert evidence["step"] in (4, 14, 24, 34)
    assert evidence["period_ns"] > 0
    assert "every 10 steps" in spike["title"]


def test_steady_growth_has_bytes_a_step_and_names_the_next_command(tmp_path):
    _, (growth,) = found(recorded(tmp_path, SPREAD), "steady_growth")
    assert growth["evidence"]["bytes_a_step"] == 2**20
    assert growth["evidence"]["steps"] == 40
    assert "gpumemprof diff --steps 20 39 on this recording" in growth["fix"]


def test_where_the_line_is_known_steady_growth_is_no_finding_of_any_face(growing):
    said, growths = found(growing, "steady_growth")
    assert growths == []
    assert [f["kind"] for f in said["findings"] if f["severity"] != "info"] == ["leak"], "the line is the finding"
    (device,) = [d for d in said["devices"] if d["device"] == "cpu"]
    assert "steady_growth" in [p["pattern_type"] for p in device["patterns"]]
    text = harness.execute([harness.COMMAND, "analyze", growing]).ok().stdout.decode()
    assert all(f["title"] in text for f in said["findings"])
    assert said["score"]["parts"]["growth"]["value"] < 6
    lines = harness.execute([harness.COMMAND, "diff", growing, "--steps", "20", "39", "--format", "json"]).ok().stdout
    assert json.loads(lines)["by_line"][0]["delta_bytes"] == 19 * 2**20


def test_nothing_is_found_where_nothing_moves(tmp_path):
    said = harness.analysis(recorded(tmp_path, FLAT))
    assert not {"sawtooth", "spike", "steady_growth"} & {f["kind"] for f in said["findings"]}


def test_the_score_is_the_mean_of_the_parts_that_are_known(growing):
    for argv in ((), ("--capacity", "1GiB")):
        done = harness.execute([harness.COMMAND, "analyze", growing, "--format", "json", *argv]).ok()
        score = json.loads(done.stdout)["score"]
        known = [(p["value"], p["weight"]) for p in score["parts"].values() if p["value"] is not None]
        assert score["value"] == pytest.approx(sum(v * w for v, w in known) / sum(w for _, w in known))
        assert (score["parts"]["peak"]["value"] is not None) == bool(argv)
        assert all(p["reason"] for p in score["parts"].values())
    text = harness.execute([harness.COMMAND, "analyze", growing, "--capacity", "1GiB"]).ok().stdout.decode()
    assert f"Score: {score['value']:.1f} of 10 (peak " in text


@pytest.mark.parametrize(("conditions", "rc"), [
    ("leak", 3),
    ("leak,peak>1TiB", 3),
    ("peak>1MiB", 3),
    ("peak>1TiB", 0),
    ("spike", 0),
    ("steady_growth", 0),  # where the line is known the leak is the finding
    ("fragmentation, peak > 1TiB", 2),
    ("peak>much", 2),
    ("peak>", 2),
    ("leaks", 2),
    ("leak,", 2),
    ("", 2),
])
def test_fail_on(growing, conditions, rc):
    done = fail_on(growing, conditions)
    assert done.rc == rc, done
    if rc == 2:
        assert done.stdout == b""
    else:
        assert json.loads(done.stdout)["schema"] == "gpumemprof.analysis/1", "the report is written all the same"
    assert done.stderr.count(b"\n") == (0 if rc == 0 else 1), done
    if rc != 0:
        assert done.stderr.startswith(b"gpumemprof: --fail-on: ")


def test_fail_on_says_which_conditions_hold(growing):
    said = fail_on(growing, "peak>1MiB,leak").stderr.decode()
    assert "the peak of cpu is " in said and ", more than 1.00 MiB; leak: program.py:8 keeps 1.00 MiB more" in said


def test_the_package_scores_a_recording_by_what_the_core_found(growing):
    gpumemprof = pytest.importorskip("gpumemprof")
    report = gpumemprof.MemoryAnalyzer().generate_optimization_report(str(growing))
    parts = {part["name"]: part["value"] for part in report["optimization_score_parts"]}
    wanted = {name: part["value"] for name, part in harness.analysis(growing)["score"]["parts"].items()}
    for name in ("growth", "cleanup", "spikes"):
        assert parts[name] == pytest.approx(wanted[name]), name
    assert {"steady_growth"} <= {pattern["pattern_type"] for pattern in report["all_patterns"]}
