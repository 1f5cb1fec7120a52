"""Files that the page sends: with the token, to a folder that goes with the command, and never elsewhere."""

import http.client
import os
import time
from pathlib import Path

import harness
import pytest
from page_client import served

SNAPSHOT = harness.ROOT / "tests" / "fixtures" / "allocator" / "training_2.5.pickle"
RECORDING = harness.ROOT / "tests" / "fixtures" / "recordings" / "streams_2.13.gmp"


@pytest.fixture
def page(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with served([harness.COMMAND], RECORDING, "--no-index", env={**os.environ, "TMPDIR": str(temporary)}) as (page, _):
        page.run()
        page.temporary = temporary
        yield page
    assert list(temporary.iterdir()) == []


def send(page, body, name="sent.pickle", token=None, length=None, host=None, path="/api/v1/file"):
    """Status and body of a PUT."""
    connection = http.client.HTTPConnection(page.address, timeout=20)
    try:
        connection.putrequest("PUT", f"{path}?name={name}&token={page.token if token is None else token}", skip_host=True)
        connection.putheader("Host", host or page.address)
        if length != "none":
            connection.putheader("Content-Length", str(len(body) if length is None else length))
        connection.endheaders()
        connection.send(body)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def stored(page):
    return sorted(str(p.relative_to(page.temporary)) for p in page.temporary.rglob("*") if p.is_file())


def settled(page, body, **options):
    """The same, once the server is not busy with the file before."""
    for _ in range(100):
        status, answer = send(page, body, **options)
        if status != 503:
            return status, answer
        time.sleep(0.05)
    raise AssertionError(answer)


def test_a_file_that_is_sent_is_shown_as_if_it_had_been_named(page, view):
    status, answer = settled(page, SNAPSHOT.read_bytes(), name="a%20run.pickle")
    assert (status, answer) == (200, b'{"file": 1}')
    other = view(SNAPSHOT)
    sent, named = page.run()["files"][1], other.run()["files"][0]
    assert sent["name"] == "a run.pickle" and sent["devices"] == named["devices"]
    assert page.ask("holders", file=1, event="peak") == other.ask("holders", event="peak")


@pytest.mark.parametrize("name", ["..%2F..%2Fescaped", "%2Fetc%2Fpasswd", ".hidden", "", "%00x", "a" * 1000, "..", "a%5Cb"])
def test_no_name_leads_out_of_its_folder(page, name):
    assert settled(page, SNAPSHOT.read_bytes(), name=name)[0] == 200
    (path,) = stored(page)
    assert Path(path).parts[1] == "0" and len(Path(path).parts) == 3 and len(Path(path).name) <= 204
    assert not Path(path).name.startswith(".")


def test_what_is_no_file_is_told_and_the_others_stay(page):
    assert settled(page, b"nothing that anybody reads", name="x.bin")[0] == 200
    for _ in range(200):
        files = page.run()["files"]
        if files[1].get("state") == "failed":
            break
        time.sleep(0.02)
    assert "these can be read: recordings of run, " in files[1]["error"] and "\n" not in files[1]["error"]
    assert files[0]["state"] == "ready"


def test_strangers_send_nothing(page):
    body = SNAPSHOT.read_bytes()
    assert send(page, body[:0], token="0" * 32)[0] == 401
    assert send(page, body[:0], host="evil.example")[0] == 421
    assert send(page, body[:0], path="/api/v1/run")[0] == 404
    assert send(page, b"", length="none")[0] == 411
    assert send(page, b"", length="1, 2")[0] == 400
    assert send(page, b"")[0] == 400
    assert send(page, b"", length=(4 << 30) + 1)[0] == 413
    assert send(page, b"", length=1 << 64)[0] == 400
    assert stored(page) == []


def test_a_half_of_a_file_is_not_kept(page):
    connection = http.client.HTTPConnection(page.address, timeout=20)
    connection.putrequest("PUT", f"/api/v1/file?name=half&token={page.token}")
    connection.putheader("Content-Length", "1000")
    connection.endheaders()
    connection.send(b"x" * 500)
    for _ in range(200):
        if stored(page):
            break
        time.sleep(0.02)
    assert len(stored(page)) == 1
    connection.close()
    for _ in range(200):
        if not stored(page):
            break
        time.sleep(0.02)
    assert stored(page) == []
    assert len(page.run()["files"]) == 1
