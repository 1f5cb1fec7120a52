"""No name of the user's own is left in anything that was made with --anonymize, and the figures stay."""

import gzip
import json
import platform

import harness
import pytest
from carried_page import CarriedPage
from programs_to_export import export, record_acme

pytest.importorskip("torch")
FORMATS = ["jsonl", "csv", "perfetto", "pprof", "speedscope", "folded"]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acme_secret_place")
    return [record_acme(folder / "acme_one", 1_000_000, 3_000_000), record_acme(folder / "acme_two", 1_000_000, 5_000_000)]


def plain(to, data):
    return gzip.decompress(data) if to == "pprof" else data


def assert_no_name(data):
    for token in (b"acme", platform.node().encode(), b"pytest-of", str(harness.ROOT).encode()):
        assert token not in data.lower() if token == b"acme" else token not in data, token


@pytest.mark.parametrize("to", FORMATS)
def test_no_export_holds_a_name(recordings, to):
    assert b"acme" in plain(to, export(recordings[0], "--to", to)), "else the test proves nothing"
    data = plain(to, export(recordings[0], "--to", to, "--anonymize"))
    assert_no_name(data)
    assert b"file1.py" in data and b"function" in data


def said(words):
    """What a command writes; of a page what it carries, unpacked: the rest is the same on every page."""
    told = harness.execute([harness.COMMAND, *words]).ok().stdout
    if "html" not in words:
        return told
    page = CarriedPage(told)
    return (page.names() + page.data["note"] + page.data.get("start", "")).encode()


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_no_diff_holds_a_name(recordings, form):
    told = said(["diff", *recordings, "--anonymize", "--format", form])
    assert_no_name(told)
    assert b"input1" in told and b"input2" in told


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_no_report_holds_a_name(recordings, form):
    told = said(["analyze", recordings[0], "--anonymize", "--format", form])
    assert_no_name(told)
    assert b"file1.py" in told


def test_a_snapshot_names_no_process_and_its_figures_stay():
    snapshot = harness.ROOT / "tests" / "fixtures" / "recordings" / "range_2.6.pickle"
    peaks = [
        [device["peak"]["requested_bytes"] for device in json.loads(said(["analyze", snapshot, *options, "--format", "json"]))["devices"]]
        for options in ([], ["--anonymize"])
    ]
    assert peaks[0] == peaks[1] != []
    assert_no_name(said(["analyze", snapshot, "--anonymize", "--format", "html"]))


@pytest.mark.parametrize("name", ["report.md", "report.txt"])
def test_no_report_in_a_file_holds_a_name(recordings, tmp_path, name):
    path = tmp_path / name
    harness.execute([harness.COMMAND, "analyze", recordings[0], "--anonymize", "--report", path]).ok()
    assert_no_name(path.read_bytes())
    assert b"file1.py" in path.read_bytes()


def test_all_but_the_names_stays(recordings):
    def figures(data):
        return [{k: v for k, v in json.loads(line).items() if k != "stack"} for line in data.splitlines()]

    named, anonymous = (export(recordings[0], "--to", "jsonl", *more) for more in ([], ["--anonymize"]))
    assert figures(named) == figures(anonymous)
    translation = {}
    for one, other in zip(named.splitlines(), anonymous.splitlines()):
        for frame, shown in zip(json.loads(one).get("stack", []), json.loads(other).get("stack", [])):
            assert translation.setdefault(frame, shown) == shown, "the same name, the same replacement"
    assert len(set(translation.values())) == len(translation)


def test_a_diff_says_the_same_without_names(recordings):
    def rows(*more):
        done = harness.execute([harness.COMMAND, "diff", *recordings, "--format", "json", *more]).ok()
        return [{k: v for k, v in row.items() if k != "stack"} for row in json.loads(done.stdout)["by_stack"]]

    assert rows() == rows("--anonymize")
