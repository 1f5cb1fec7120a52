"""The live dashboard: over HTTP, and with `slow` in a real browser."""

import json
import re
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from made_results import MIB, result, samples, training

from gpumemprof import MemoryVisualizer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def serve():
    started = []

    def start(source, **options):
        started.append(MemoryVisualizer(source).create_interactive_dashboard(port=0, interval_s=0.2, **options))
        return started[-1]

    yield start
    for dashboard in started:
        dashboard.stop()


def fetch(url, host=None):
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def test_the_page_and_its_scripts_come_from_this_process_alone(serve):
    url = serve(training()).url
    page = fetch(url)
    assert "<title>gpumemprof</title>" in page and not re.search(r'(src|href)="(?!data:)', page)
    with urllib.request.urlopen(url, timeout=10) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    (file,) = json.loads(fetch(f"{url}/api/v1/run"))["files"]
    assert file["devices"] == [] and "27 calls of 3 functions" in json.dumps(file["document"])
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(f"{url}/etc/passwd")
    assert refused.value.code == 404


def test_it_returns_at_once_and_ends_with_stop(serve, capsys):
    dashboard = serve(training())
    assert capsys.readouterr().out == f"gpumemprof: dashboard at {dashboard.url}\n"
    dashboard.stop()
    dashboard.stop()
    with pytest.raises(urllib.error.URLError):
        fetch(dashboard.url)
    assert "gpumemprof dashboard" not in {thread.name for thread in threading.enumerate()}


def test_wait_ends_with_stop(serve):
    dashboard = serve(training())
    waiter = threading.Thread(target=dashboard.wait)
    waiter.start()
    dashboard.stop()
    waiter.join(10)
    assert not waiter.is_alive()


def test_a_taken_port_is_said_and_ends_nothing():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 cannot be used .*port=0 takes a free one"):
            MemoryVisualizer(training()).create_interactive_dashboard(port=port)


def test_a_page_elsewhere_cannot_read_it_under_a_name_of_its_own(serve):
    dashboard = serve(training())
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(dashboard.url, host="attacker.example:8050")
    assert refused.value.code == 403


def test_it_listens_on_the_loopback_address(serve):
    assert serve(training()).url.startswith("http://127.0.0.1:")


def test_what_is_no_source_fails_before_anything_is_served():
    with pytest.raises(TypeError):
        MemoryVisualizer().create_interactive_dashboard(5, port=0)


def test_a_program_ends_though_its_dashboard_is_open():
    import subprocess
    import sys

    program = "from gpumemprof import MemoryVisualizer as V; V().create_interactive_dashboard([1, 2, 3], port=0)"
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


def test_a_file_that_vanishes_is_said_on_the_page_and_raises_nothing(tmp_path):
    from gpumemprof.dashboard import Dashboard

    path = tmp_path / "t.json"
    path.write_text(json.dumps(samples([MIB, 2 * MIB])))
    dashboard = Dashboard(str(path))
    assert len(dashboard.measured().series) == 2
    path.unlink()
    deadline = time.monotonic() + 30
    while not (unknown := dashboard.measured().unknown) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert str(path) in unknown


def test_a_source_is_not_asked_more_often_than_a_twentieth_of_the_time_allows():
    from gpumemprof.dashboard import Dashboard

    asked = []

    class Slow:
        snapshots = ()

        @property
        def results(self):
            asked.append(1)
            time.sleep(0.5)
            return training()

    dashboard = Dashboard(Slow())
    once = len(asked)
    for _ in range(20):
        dashboard.measured()
    assert len(asked) == 2 * once  # the next time is due ten seconds later


@pytest.fixture
def page(tmp_path):
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=CHROMIUM,
            headless=True,
            args=QUIET,
            viewport={"width": 1200, "height": 1000},
        )
        page = context.pages[0]
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("console", lambda message: message.type == "error" and page.troubles.append(message.text))
        page.foreign = []
        page.on("request", lambda request: page.foreign.append(request.url))
        yield page
        context.close()


def wait_for(page, selector, text):
    page.wait_for_function("([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
                           arg=[selector, text])  # fmt: skip


@pytest.mark.slow
def test_the_page_follows_the_profiler_while_it_works(serve, page):
    profiler = SimpleNamespace(results=training(epochs=2), snapshots=[])
    url = serve(profiler).url
    page.goto(url)
    wait_for(page, ".report", "4 calls of 2 functions")
    profiler.results = training(epochs=4)
    wait_for(page, ".report", "9 calls of 3 functions")
    assert "exact, from allocator events" in page.inner_text(".report")
    assert page.troubles == [] and [u for u in page.foreign if not u.startswith(url)] == []


@pytest.mark.slow
def test_a_click_on_a_function_shows_its_calls(serve, page):
    page.goto(serve([result("f", 0, 0.5, MIB, 65 * MIB, 2 * MIB), result("g", 1, 0.5, 0, MIB, 0)]).url)
    page.locator(".report summary", has_text="f").first.click()
    cells = page.locator(".report details[open] tbody td").all_inner_texts()
    assert [re.sub(r"\s+", " ", cell).strip() for cell in cells] == ["1", "65.0 MiB", "64.0 MiB", "1.00 MiB", "0.5"]


@pytest.mark.slow
def test_a_tracker_has_a_timeline_and_no_functions(serve, page):
    page.goto(serve(samples([MIB, 3 * MIB, 2 * MIB])).url)
    wait_for(page, ".report", "3 samples")
    wait_for(page, ".report", "no functions were profiled")
    wait_for(page, ".report", "at least 3.00 MiB at 0.1 s")


@pytest.mark.slow
def test_a_real_tracker_grows_in_the_page(serve, page):
    from gpumemprof import MemoryTracker

    # Before the first sample the page says no number, though "between two samples" may stand there already.
    more_than = "count => Number(/([0-9]+) samples/.exec(document.querySelector('.report')?.innerText)?.[1]) > count"
    with MemoryTracker(device="cpu", sampling_interval=0.05) as tracker:
        page.goto(serve(tracker).url)
        page.wait_for_function(more_than, arg=0)
        count = int(re.search(r"([0-9]+) samples", page.inner_text(".report"))[1])
        page.wait_for_function(more_than, arg=count)


@pytest.mark.slow
def test_the_static_dashboard_draws_all_of_its_pictures(page, tmp_path):
    MemoryVisualizer().create_dashboard(training(), save_path=tmp_path / "d.html")
    page.goto(f"file://{tmp_path}/d.html")
    wait_for(page, ".report", "peak 511 MiB")
    assert page.locator(".report canvas[role=img]").count() == 2 and page.locator(".report tbody tr summary").count() == 3
    assert page.troubles == []
