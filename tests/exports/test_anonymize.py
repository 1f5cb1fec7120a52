"""No name of the user's own is left in anything that was made with --anonymize, and the figures stay."""

import gzip
import json
import os
import pickle
import platform
import sys

import harness
import pytest
from carried_page import CarriedPage
from programs_to_export import export, record_acme

sys.path[:0] = [str(harness.ROOT / "tests" / room) for room in ("page", "commands")]
import runs  # noqa: E402
import snapshots  # noqa: E402

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


def differences(one, other, where=""):
    """Of two documents, but for the words in them."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in differences(one[key], other[key], f"{where}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [found for i, pair in enumerate(zip(one, other)) for found in differences(*pair, f"{where}[{i}]")]
    return [] if one == other or (isinstance(one, str) and isinstance(other, str)) else [(where, one, other)]


def python_files(data):
    """Of all frames in it, by their whole path."""
    if isinstance(data, dict):
        if "filename" in data:
            return {name for name in [data["filename"]] if name.startswith("/") and name.endswith(".py")}
        return set().union(*map(python_files, data.values()))
    return set().union(*map(python_files, data)) if isinstance(data, (list, tuple)) else set()


@pytest.mark.parametrize("snapshot", [*runs.SNAPSHOTS, *sorted((harness.ROOT / "tests/fixtures/allocator").glob("*_2.1[13].pickle"))],
                         ids=lambda path: path.name)  # fmt: skip
def test_of_a_snapshot_nothing_but_the_names_changes(snapshot):
    plain, anonymous = (json.loads(said(["analyze", snapshot, *options, "--format", "json"])) for options in ([], ["--anonymize"]))
    assert differences(plain, anonymous) == []
    page = said(["analyze", snapshot, "--anonymize", "--format", "html"])
    own = {os.path.dirname(file) for file in python_files(snapshots.load(snapshot))
           if not {"site-packages", "dist-packages", "lib"} & set(file.split("/"))}  # fmt: skip
    assert not [folder for folder in own if len(folder) > 1 and folder.encode() in page]


def test_what_a_program_says_to_pytorch_is_anonymous_too_and_its_steps_are_known(tmp_path):
    frames = [{"filename": "/srv/acme/train.py", "line": 3, "name": "acme_step"}]
    trace = [{"action": "alloc", "addr": 1 << 30, "size": 4096, "stream": 0, "time_us": 15, "frames": frames, "user_metadata": "acme words"},
             {"action": "alloc", "addr": 2 << 30, "size": 8192, "stream": 0, "time_us": 30, "frames": frames}]  # fmt: skip
    said_by = ["Optimizer.step#AcmeAdam.step", "acme range"]
    notes = [{"name": name, "stage": stage, "device": 0, "time_us": time} for name in said_by for stage, time in (("START", 10), ("END", 20))]
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [trace], "external_annotations": notes}))
    assert b"acme" in said(["analyze", path, "--format", "html"]).lower(), "else the test proves nothing"
    for words in (["analyze", path, "--format", "html"], ["analyze", path, "--format", "json"], ["export", path, "--to", "csv"]):
        assert_no_name(said([*words, "--anonymize"]))
    found = json.loads(said(["analyze", path, "--anonymize", "--format", "json"]))["devices"][0]
    assert found["categories_at_peak"]["optimizer state"] == 4096


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
