"""Recordings that a release wrote: every later one gives the same figures of them. tests/compat/train.py is what was recorded."""

import json

import harness
import pytest

COMPAT = harness.ROOT / "tests" / "compat"
RELEASES = sorted(path.name for path in COMPAT.iterdir() if path.is_dir())
STEPS, ROWS = 24, 32
# What a step keeps, in floats: the input, the output of ReLU that its graph needs, the result.
KEPT = 4 * ROWS * (64 + 256 + 8)
PARAMETERS = 4 * (64 * 256 + 256 + 256 * 8 + 8)


def command(*words):
    return harness.execute([harness.COMMAND, *words], timeout=60).ok().stdout.decode()


@pytest.fixture(params=RELEASES, scope="module")
def recording(request):
    return COMPAT / request.param


def test_there_is_one():
    assert RELEASES == ["1.0.0"]


def test_figures_types_leak_and_holder_are_those_of_the_program(recording):
    report = json.loads(command("analyze", recording, "--no-seal", "--format", "json"))
    parent, child = report["devices"]
    assert (parent["peak"]["requested_bytes"], parent["peak"]["blocks"], parent["peak"]["exact"]) == (1_395_872, 94, True)
    assert (child["peak"]["requested_bytes"], child["process"]) == (400_000, 8025)
    types = parent["categories_at_peak"]
    assert types["input"] == (STEPS - 1) * 4 * ROWS * 64
    assert types["parameter"] == types["gradient"] == PARAMETERS and types["optimizer state"] == 2 * PARAMETERS + 4 * 4  # Adam: two moments, and a step each
    (leak,) = [finding for finding in report["findings"] if finding["kind"] == "leak"]
    assert (leak["bytes"], leak["evidence"]["bytes_a_step"]) == (STEPS * KEPT, KEPT)
    assert (leak["name"], leak["evidence"]["holder_name"], leak["stack"]) == (
        "outputs_kept_with_graph", "history", ["/srv/example/train.py:26 <module>"])  # fmt: skip
    assert report["lost"]["events"] == 0 and report["end"]["runs"][0]["exit_code"] == 0


def test_every_event_is_read(recording):
    events = [json.loads(line) for line in command("export", recording, "--no-seal", "--to", "jsonl").splitlines()]
    assert len(events) == 3198
    assert sum(event["size_bytes"] == 400_000 for event in events) == 2


def test_the_page_opens_it(recording, tmp_path):
    page = tmp_path / "page.html"
    command("view", recording, "--html", page)
    assert 'id="gpumemprof-data">{' in page.read_text()
