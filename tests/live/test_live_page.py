"""The live page in a real browser, and the dashboard against a real Prometheus. Slow: both are started for it."""

import contextlib
import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
from urllib.request import urlopen

import harness
import pytest
from commands.programs_for_commands import recorded_pid
from live_helpers import needs, serving
from test_serve import free_port

FAKES = harness.ROOT / "build" / "tests" / "fakes"

# Holds 10 MiB and, for each line that it reads, 20 MiB more.
GROWING = """
import sys, torch
layer = torch.nn.Linear(8, 8)  # small, for a category
kept = [torch.empty(10 << 20, dtype=torch.uint8), layer(torch.ones(1, 8))]
print("ready", flush=True)
for line in sys.stdin:
    kept.append(torch.empty(20 << 20, dtype=torch.uint8))
    print("more", flush=True)
"""


# Two MiB more four times a second, for good.
LEAKING = GROWING.split("for line")[0] + """
import threading
is_over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
while not is_over.wait(0.25):
    kept.append(torch.empty(2 << 20, dtype=torch.uint8))
"""


@contextlib.contextmanager
def growing(folder, program=GROWING, **environment):
    argv = harness.run_argv(folder, [harness.PYTHON, "-c", program], ["--quiet"])
    env = os.environ | environment
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


@pytest.mark.slow
def test_figures_that_change_arrive_on_an_open_page(tmp_path):
    pytest.importorskip("torch")
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = needs("chromium")
    with growing(tmp_path / "r") as program, serving() as server, playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        errors, asked = [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(urllib.parse.urlsplit(request.url).path))
        page.goto(f"http://127.0.0.1:{server.port}/")
        mine = page.locator("#recordings", has_text=f"pid {recorded_pid(tmp_path / 'r')}")
        mine.get_by_text("10.0 MiB").first.wait_for()
        for held in ("30.0 MiB", "50.0 MiB"):
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "more\n"
            mine.get_by_text(held).first.wait_for()
        browser.close()
    assert not errors
    # The page was fetched once: what changed came through the one stream.
    assert asked.count("/") == 1 and asked.count("/events") == 1 and "/metrics" not in asked


def answer_of(port, query):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        with urlopen(url, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        return json.load(refused)
    except OSError:
        return {"status": "not up yet"}


@pytest.mark.slow
def test_a_real_prometheus_answers_every_panel_of_the_dashboards(tmp_path):
    pytest.importorskip("torch")
    prometheus = needs("prometheus")
    board = harness.ROOT / "tests" / "fakes" / "nvml" / "boards" / "a100-80gb.yaml"
    gpus = {**os.environ, "LD_LIBRARY_PATH": str(FAKES / "nvml-3"), "FAKE_NVML_BOARD": str(board)}
    boards = [json.loads(path.read_text()) for path in (harness.ROOT / "deploy" / "grafana").glob("*.json")]
    panels = [panel for board in boards for panel in board["panels"]]
    port = free_port()
    with growing(tmp_path / "r", RANK="0"), growing(tmp_path / "s", LEAKING, RANK="1"), serving(env=gpus) as server:
        scrape = {"job_name": "gpumemprof", "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}
        (tmp_path / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        argv = [prometheus, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                end = time.monotonic() + 60
                # Two scrapes, so that rates are known.
                # And until growth is told, which takes a quarter of a minute.
                wanted = "count_over_time(up[1m]) > 2 and on () count(gpumemprof_recording_leak_bytes_per_second > 0)"
                while answer_of(port, wanted).get("data", {}).get("result", []) == []:
                    assert time.monotonic() < end
                    time.sleep(0.5)
                empty = []
                for panel in panels:
                    for target in panel["targets"]:
                        query = target["expr"]
                        for name, value in {"$__range": "1m", "$__rate_interval": "1m", "$instance": ".*",
                                            "$program": ".*"}.items():  # fmt: skip
                            query = query.replace(name, value)
                        answer = answer_of(port, query)
                        assert answer["status"] == "success", (panel["title"], answer)
                        if not answer["data"]["result"]:
                            empty.append(panel["title"])
            finally:
                process.terminate()
    # A CPU's allocator reserves nothing, and no driver is called whose memory could be summed up: tests/driver has both.
    sums = {panel["title"] for panel in panels if "_sum_" in panel["targets"][0]["expr"]}
    assert len(sums) == 2 and set(empty) <= {"Reserved and not allocated"} | sums, empty
