"""Metrics and the live page: exact figures, their formats checked by those who made them."""
import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import time
import urllib.parse
from urllib.request import urlopen

import harness
import pytest
from commands.programs_for_commands import ALLOCATIONS, LIVE_BYTES, PEAK_BYTES, recorded_pid, standing_program
from live_helpers import TOKEN, needs, serving
from schema_test import validator


@pytest.fixture(scope="module")
def server():
    with serving() as started:
        yield started


def test_metrics_are_the_programs_exact_bytes(server, standing):
    found = server.metrics(pid=standing.pid)
    assert found["gpumemprof_recording_allocated_bytes", "cpu"] == LIVE_BYTES
    assert found["gpumemprof_recording_peak_bytes", "cpu"] == PEAK_BYTES
    assert found["gpumemprof_recording_live_blocks", "cpu"] == 4
    assert found["gpumemprof_recording_allocations_total", "cpu"] == ALLOCATIONS
    assert found["gpumemprof_recording_frees_total", "cpu"] == 1
    assert found["gpumemprof_recording_exact", None] == 1
    assert found["gpumemprof_recording_lost_events", None] == 0
    assert ("gpumemprof_recording_reserved_bytes", "cpu") not in found, "unknown is no 0"
    assert found.get(("gpumemprof_recording_leak_bytes_per_second", "cpu"), 0) == 0, "0, once that is known"


def test_a_run_that_has_ended_has_no_metrics(server, tmp_path):
    pytest.importorskip("torch")
    with standing_program(tmp_path / "r"):
        pid = recorded_pid(tmp_path / "r")
        assert harness.until(lambda: server.metrics(pid=pid))
    assert harness.until(lambda: not server.metrics(pid=pid))


REFUSED = """
import torch
held = torch.ones(1000)
print("ready", flush=True)
input()
torch.empty(1 << 50, dtype=torch.uint8)
"""


def test_a_request_whose_refusal_ended_the_program_is_counted_after_its_end(server, tmp_path):
    pytest.importorskip("torch")
    count = ("gpumemprof_refused_allocations_total", None)
    before = server.metrics()[count]
    argv = harness.run_argv(tmp_path / "r", [harness.PYTHON, "-c", REFUSED], ["--quiet"])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout.readline() == "ready\n"
        assert harness.until(lambda: harness.files(tmp_path / "r"))
        pid = recorded_pid(tmp_path / "r")
        assert harness.until(lambda: server.metrics(pid=pid))
        run.communicate("\n", timeout=60)
    assert run.returncode == 1
    # Other programs of this machine may be refused memory, too.
    assert harness.until(lambda: server.metrics()[count] >= before + 1)
    assert harness.until(lambda: not server.metrics(pid=pid))
    assert server.metrics()[count] >= before + 1
    (picture,) = pictures(server, 1)
    told = [alert["text"] for alert in picture["alerts"] if alert["subject"] == f"pid {pid} cpu"]
    assert told == ["1 request for memory was refused"]


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_promtool_finds_nothing_to_say(server, standing, accept):
    promtool = needs("promtool")
    response, text = server.get("/metrics", {"Accept": accept})
    if "openmetrics" in accept:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        assert text.endswith("# EOF\n")
        return  # promtool 2.42 reads the older format alone; Prometheus itself reads this one below
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(port, query):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def test_a_real_prometheus_scrapes_it(standing, tmp_path):
    prometheus = needs("prometheus")
    (tmp_path / "token").write_text(TOKEN)
    with serving("--token-file", tmp_path / "token") as server:
        config = f"""
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{harness.ROOT}/deploy/prometheus/gpumemprof-alerts.yaml]
scrape_configs:
- job_name: gpumemprof
  authorization: {{credentials_file: {tmp_path}/token}}
  static_configs: [{{targets: ['127.0.0.1:{server.port}']}}]
"""
        (tmp_path / "prometheus.yml").write_text(config)
        port = free_port()
        with subprocess.Popen([prometheus, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                               f"--web.listen-address=127.0.0.1:{port}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                query = f'gpumemprof_recording_allocated_bytes{{pid="{standing.pid}"}}'
                result = []
                for _ in range(300):
                    try:
                        result = ask(port, query)
                    except OSError:
                        pass
                    if result:
                        break
                    time.sleep(0.2)
                (one,) = result
                assert float(one["value"][1]) == LIVE_BYTES
                assert one["metric"]["device"] == "cpu"
                (up,) = ask(port, 'up{job="gpumemprof"}')
                assert up["value"][1] == "1"
                (kind,) = [m["type"] for m in metadata(port)["gpumemprof_recording_allocations"]]
                assert kind == "counter", "it was read as OpenMetrics"
            finally:
                process.terminate()


def metadata(port):
    with urlopen(f"http://127.0.0.1:{port}/api/v1/metadata", timeout=30) as answer:
        return json.load(answer)["data"]


def pictures(server, count):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stream:
        stream.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        data = b""
        while data.count(b"\n\n") < count:
            data += stream.recv(65536)
    head, _, events = data.partition(b"\r\n\r\n")
    assert b"Content-Type: text/event-stream" in head
    for event in events.split(b"\n\n")[:count]:
        kind, body = event.split(b"\n")
        assert kind == b"event: picture"
        yield json.loads(body.removeprefix(b"data: "))


def test_the_stream_brings_a_picture_every_second(server, standing):
    times = []
    for said in pictures(server, 3):
        validator("live.schema.json").validate(said)
        times.append(said["time_ns"])
        (recording,) = [r for r in said["recordings"] if r["pid"] == standing.pid]
        assert recording["devices"][0]["allocated_bytes"] == LIVE_BYTES
        assert recording["command"] == recording["program"], "no arguments: they may be secrets"
    assert times == sorted(set(times))


def test_the_page_is_whole_by_itself(server):
    response, page = server.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in policy and "http" not in policy
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    # Its style and its script are those that the policy names by their hashes, and nothing else runs.
    for element, rule in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert '<script type="application/json" id="gpumemprof-live">{}</script>' in page


def test_a_browser_shows_the_figures(server, standing):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = needs("chromium")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.port}/")
        # The first picture may be of before this program.
        page.wait_for_function("pid => document.querySelector('#recordings').innerText.includes(pid)", arg=f"pid {standing.pid}")
        shown = page.inner_text("#recordings")
        browser.close()
    assert not errors
    assert f"pid {standing.pid}" in shown and "10.0 MiB" in shown and "74.0 MiB" in shown and "<string>:3" in shown


def test_other_paths_and_methods_are_refused(server):
    for path, status in (("/healthz", 200), ("/../etc/passwd", 404), ("/etc/passwd", 404), ("/metrics/..", 404)):
        assert server.get(path)[0].status == status, path
    assert server.get("/", method="HEAD")[1] == ""
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert server.get("/metrics", method=method)[0].status == 405


def test_a_page_of_another_site_cannot_ask(server):
    assert server.get("/metrics", {"Host": "rebound.example"})[0].status == 421


def test_a_token_is_wanted_where_there_is_one(tmp_path):
    with serving(env=dict(os.environ, GPUMEMPROF_TOKEN=TOKEN)) as server:
        assert server.get("/healthz")[1] == "ok\n"
        for headers in ({}, {"Authorization": "Bearer wrong-wrong-wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            assert server.get("/metrics", headers)[0].status == 401
        assert server.get("/metrics", {"Authorization": f"Bearer {TOKEN}", "Host": "by.name.example"})[0].status == 200
        assert server.get(f"/metrics?token={TOKEN}")[0].status == 200


def test_another_machine_needs_a_token(tmp_path):
    (tmp_path / "short").write_text("short")
    for options, words in ((["--listen", "0.0.0.0:0"], "a token is required"), (["--listen", "example.org:80"], "not an address"),
                           (["--token-file", tmp_path / "short"], "at least 16"),
                           (["--warning-threshold", "90", "--critical-threshold", "80"], "above"),
                           (["--token-file", tmp_path / "none"], "none")):
        done = harness.execute([harness.COMMAND, "serve", *options])
        assert done.rc == 2 and done.stderr.count(b"\n") == 1, done
        assert words in done.stderr.decode()


def test_an_address_that_is_taken_is_said(server):
    done = harness.execute([harness.COMMAND, "serve", "--listen", str(server.port)])
    assert done.rc == 1 and b"cannot listen on 127.0.0.1" in done.stderr
