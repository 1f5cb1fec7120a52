"""The page as one file: small whatever the run, with the answers that the server gives."""

import base64
import re
import subprocess
import urllib.parse
import zlib

import harness
import nested
import pytest
import runs
from carried_page import CarriedPage
from page_client import columns


def carried(path):
    """What a page of one file holds."""
    return CarriedPage(path.read_text()).data


def opened(answer):
    return columns(zlib.decompress(base64.b64decode(answer), -15))


@pytest.fixture(params=[runs.SNAPSHOTS[0], runs.RECORDINGS[0]] + [p for p in runs.SNAPSHOTS if "4gpu" in p.name], ids=lambda p: p.name)
def one_file(request, tmp_path):
    out = tmp_path / "page.html"
    done = harness.execute([harness.COMMAND, "view", "--html", out, request.param])
    if b"built without its page" in done.stderr:
        pytest.skip("this command was built without its page")
    done.ok()
    return request.param, out


def test_it_is_small_and_asks_nobody(one_file):
    _, out = one_file
    assert out.stat().st_size <= 10_000_000
    text = out.read_text()
    assert "connect-src 'self'" in text or "connect-src 'none'" in text
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_its_answers_are_those_of_the_server(one_file, view):
    path, out = one_file
    data = carried(out)
    page = view(path)
    page.run()
    assert {"run", "marks?device=0&file=0"} <= set(data["answers"])
    for key, answer in data["answers"].items():
        if key == "run":
            continue
        what, _, query = key.partition("?")
        names = [part.split("=")[0] for part in query.split("&")]
        assert names == sorted(names), key
        told = page.ask(what, **dict(urllib.parse.parse_qsl(query)))
        header, arrays = opened(answer)
        if isinstance(told, dict):
            assert {k: v for k, v in header.items() if k != "columns"} == told, key
        else:
            assert (header, arrays) == told, key


def test_it_says_why_no_settings_can_be_replayed(tmp_path):
    """A recording of the CPU, whose allocator is malloc."""
    pytest.importorskip("torch")
    folder, out = tmp_path / "r", tmp_path / "page.html"
    nested.record(folder, [harness.PYTHON, "-c", "import torch; kept = torch.ones(1 << 20)"], ["-q"]).ok()
    done = harness.execute([harness.COMMAND, "view", "--html", out, folder])
    if b"built without its page" in done.stderr:
        pytest.skip("this command was built without its page")
    done.ok()
    header, _ = opened(carried(out)["answers"]["whatif?columns=1024&device=0&file=0"])
    assert header["unknown"] == "the allocator was not recorded, so it cannot be simulated"


def test_it_is_exact_at_the_peak_and_says_so(one_file):
    path, out = one_file
    data = carried(out)
    run, _ = opened(data["answers"]["run"])
    for index, device in enumerate(run["files"][0]["devices"]):
        event = device["peak"]["event"]
        assert event in data["moments"]
        header, _ = opened(data["answers"][f"holders?by=stack&device={index}&event={event}&file=0"])
        assert header["total_bytes"] == device["peak"]["bytes"]
    assert str(len(data["moments"])) in data["note"]
