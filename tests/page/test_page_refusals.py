"""What nobody may ask, and what makes no sense, is refused with one line."""

import json
import re

import pytest
import runs

SNAPSHOT = runs.SNAPSHOTS[0]


@pytest.fixture
def page(view):
    page = view(SNAPSHOT)
    page.run()
    return page


@pytest.mark.parametrize("token", [None, "", "0" * 32, "a"])
def test_without_the_token_nothing_is_told(page, token):
    query = {} if token is None else {"token": token}
    for path in ("/", "/api/v1/run", "/api/v1/levels"):
        status, _, body = page.get(path, has_token=False, **query)
        assert status == 401 and "\n" not in json.loads(body)["error"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "evil.example:8050"])
def test_another_host_is_refused(page, host):
    status, _, body = page.get("/api/v1/run", headers={"Host": host})
    assert status == 421 and "\n" not in json.loads(body)["error"]


def test_localhost_is_the_same_address(page):
    port = page.address.split(":")[1]
    assert page.get("/api/v1/run", headers={"Host": f"localhost:{port}"})[0] == 200


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_not_answered(page, method):
    assert page.get("/api/v1/run", method=method)[0] == 405


def test_head_has_no_body(page):
    status, headers, body = page.get("/api/v1/run", method="HEAD")
    assert status == 200 and body == b"" and int(headers["Content-Length"]) > 100


@pytest.mark.parametrize("query", [
    {"device": 1}, {"device": "x"}, {"device": -1}, {"from": 10**9}, {"from": 5, "to": 5}, {"from": 6, "to": 5}, {"to": 0},
    {"columns": 0}, {"columns": 10**7}, {"columns": 2**64}, {"columns": ""}, {"by": "colour"}, {"file": 1}, {"file": "a"},
    {"filter": "bytes>"}, {"filter": "\"open"}, {"filter": "/(/"}, {"filter": "not"}, {"filter": "category:x"},
    {"filter": "a" * 1025}, {"filter": "stream:x"}, {"filter": "/a{9}/"}, {"filter": "/(a)\\1/"}, {"filter": "a " * 33},
])  # fmt: skip
def test_what_makes_no_sense_is_refused(page, query):
    page.refusal("levels", **query)


def test_a_bad_filter_says_where(page):
    assert page.refusal("levels", filter="conv bytes>many")["at"] == len("conv bytes>")


def test_a_lifetime_in_steps_of_a_run_without_steps_is_refused(page):
    refusal = page.refusal("levels", filter="conv lived>2steps")
    assert refusal["at"] == len("conv ")
    assert refusal["error"].endswith("'s history, so lifetimes in steps are unknown")


def test_there_is_no_other_request(page):
    page.refusal("nothing", status=404)
    page.refusal("../run", status=404)
    assert page.get("/etc/passwd")[0] == 404


def test_the_page_runs_nothing_but_its_own(page):
    status, headers, body = page.get("/")
    assert status == 200 and body.startswith(b"<!doctype html>")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
    assert "http" not in policy and not re.search(r"script-src[^;]*unsafe", policy)
    assert headers["X-Content-Type-Options"] == "nosniff"
