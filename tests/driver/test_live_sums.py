"""The sum of a device while the program runs: in `top`, in its JSON, in metrics and on the live page's stream."""

import json
import re
import subprocess

import harness
import pytest
from fake_machine import environment
from live.live_helpers import needs, serving, terminal
from live_program import holding
from schema_test import validator

MIB = 1 << 20
HIDDEN = 6 * MIB  # local memory of the kernel
OTHERS, RESERVE, NOBODY = (17822 + 2488) * MIB, 633 * MIB, 4 * MIB


@pytest.fixture(scope="module")
def held(tmp_path_factory, libraries):
    folder = tmp_path_factory.mktemp("held")
    with holding(folder / "program", environment(folder), libraries) as standing:
        yield standing


def picture_of(held):
    argv = [harness.COMMAND, "top", "--once", "--format", "json", "--interval", "0"]
    said = json.loads(harness.execute(argv, env=held.env).ok().stdout)
    validator("live.schema.json").validate(said)
    (recording,) = [one for one in said["recordings"] if one["pid"] == held.pid]
    return recording


def check(now, books):
    own = sum(books.values())
    assert now["process_used_bytes"] == own
    assert (now["other_processes_bytes"], now["reserved_bytes"]) == (OTHERS, RESERVE)
    assert now["device_used_bytes"] == own + OTHERS + RESERVE + NOBODY and now["of_no_process_bytes"] == NOBODY
    assert now["contexts_bytes"] == books["contexts"] and now["modules_bytes"] == books["modules"] == 3 * MIB
    assert now["libraries"] == [{"name": "libcublas.so.12", "bytes": 32 * MIB}]
    of = now["framework"]
    assert (of["bytes"], of["allocated_bytes"], of["cached_bytes"]) == (28 * MIB, 9 * MIB, 19 * MIB)
    # The segment of 20 MiB holds a block of 9; the other of 8 holds none, and can serve or go back.
    assert of["unservable_bytes"] == 11 * MIB and of["beside_bytes"] == 0
    parts = now["contexts_bytes"] + now["modules_bytes"] + now["libraries_bytes"] + now["rounding_bytes"] + of["bytes"]
    assert parts == now["explained_bytes"] and now["unexplained_bytes"] == own - parts == HIDDEN
    assert now["unknown"] == {}


def test_the_picture_adds_up_to_the_byte(held):
    driver = picture_of(held)["driver"]
    (device,) = driver["devices"]
    assert (device["device"], device["accelerator"], device["refused_count"]) == ("cuda:0", "nvidia:0", 0)
    check(device["now"], held.books)
    assert (driver["pinned_bytes"], driver["registered_bytes"]) == (0, 0)


def test_the_report_of_the_recording_says_the_same(held):
    argv = [harness.COMMAND, "analyze", str(held.folder), "--format", "json"]
    (device,) = json.loads(harness.execute(argv, env=held.env).ok().stdout)["driver"]["devices"]
    live = picture_of(held)["driver"]["devices"][0]["now"]
    for term in ("contexts_bytes", "modules_bytes", "libraries", "rounding_bytes", "framework", "explained_bytes", "by_kind"):
        assert device["end"][term] == live[term], term


def test_as_text_the_sum_comes_after_the_overview(held):
    text = harness.execute([harness.COMMAND, "top", "--once", "--interval", "0", held.folder], env=held.env).ok().stdout.decode()
    table = {line[:42].strip(): line[42:].strip() for line in text.split(f"THE SUM OF pid {held.pid} ")[1].splitlines()}
    assert table["in pinned segments"] == "11.0 MiB" and table["libcublas.so.12"] == "32.0 MiB"
    assert table["unexplained"] == "+6.00 MiB"


@pytest.mark.parametrize("width, height", [(80, 24), (200, 60)])
def test_the_terminal_shows_every_term(held, tmp_path, width, height):
    keep = ("LD_LIBRARY_PATH", "FAKE_NVML_BOARD", "FAKE_GPU_STATE")
    with terminal(tmp_path, width, height, [harness.COMMAND, "top", "--interval", "0.2", str(held.folder)],
                  **{name: held.env[name] for name in keep}) as screen:  # fmt: skip
        screen.until(r"1 Overview")
        screen.keys("6")
        # Drawn from top to bottom: its last row is there when all are.
        lines = screen.until(rf"THE SUM OF pid {held.pid} program.py cuda:0$[\s\S]*^ *unexplained +\+6\.00 MiB")
        row = next(line for line in lines if line.split()[:1] == [str(held.pid)])
        assert row.split()[1:3] == ["cuda:0", "nvidia:0"] and row.split()[-3:] == ["+6.00", "MiB", "program.py"]
        begin = next(i for i, line in enumerate(lines) if line.startswith("THE SUM OF"))
        terms = [line[:42].strip() for line in lines[begin + 1 : -1] if line.strip()]
        assert terms == ["device used", "driver's own", "other processes", "no known process", "this process",
                         "contexts", "modules", "libcublas.so.12", "rounding to pages of 2 MiB", "framework", "allocated",
                         "cached", "in pinned segments", "unexplained"]  # fmt: skip
        assert "paused" not in lines[0]
        screen.keys("p")
        screen.until(r"6 GPU \? Help +paused \d\d:\d\d:\d\d$")


def test_the_metrics_of_devices_that_dashboards_show_are_there(held):
    shown = set(re.findall(r"gpumemprof_(?:sum_\w+|recording_reserved_bytes)", "".join(
        path.read_text() for path in (harness.ROOT / "deploy" / "grafana").glob("*.json"))))  # fmt: skip
    with serving(env=held.env) as server:
        told = {name for name, _ in server.metrics(pid=held.pid)}
    assert len(shown) > 5 and shown <= told


def test_metrics_add_up_and_promtool_has_nothing_to_say(held):
    with serving(env=held.env) as server:
        found = {name: value for (name, device), value in server.metrics(pid=held.pid).items() if device == "cuda:0"}
        parts = {}
        _, text = server.get("/metrics")
        for line in text.splitlines():
            if line.startswith("gpumemprof_sum_part_bytes{") and f'pid="{held.pid}"' in line:
                part, library = line.split('part="')[1].split('"')[0], line.split('library="')[1].split('"')[0]
                parts[part, library] = int(line.split()[-1])
    sums = {name.removeprefix("gpumemprof_sum_").removesuffix("_bytes"): int(found[name]) for name in found if "_sum_" in name}
    own = sum(held.books.values())
    assert parts == {
        ("contexts", ""): held.books["contexts"], ("modules", ""): 3 * MIB, ("rounding", ""): 0,
        ("framework", ""): 28 * MIB, ("library", "libcublas.so.12"): 32 * MIB,
    }  # fmt: skip
    assert sums["process_used"] == own == sum(parts.values()) + sums["unexplained"] and sums["unexplained"] == HIDDEN
    assert sums["device_used"] == own + sums["other_processes"] + sums["driver_reserved"] + sums["no_process"]
    assert (sums["allocated"], sums["cached"], sums["unservable"]) == (9 * MIB, 19 * MIB, 11 * MIB)
    assert 'accelerator="nvidia:0"' in text
    done = subprocess.run([needs("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_recording_without_the_driver_has_no_sum(held, tmp_path, libraries):
    with holding(tmp_path / "other", held.env, libraries, options=["--no-driver"]) as other:
        assert picture_of(other)["driver"] is None


def test_what_cannot_be_known_says_why(tmp_path, libraries):
    env = environment(tmp_path, management=False)
    with holding(tmp_path / "program", env, libraries) as standing:
        (device,) = picture_of(standing)["driver"]["devices"]
        now = device["now"]
        assert device["accelerator"] is None and now["process_used_bytes"] is None and now["unexplained_bytes"] is None
        assert now["contexts_bytes"] is None and now["explained_bytes"] is None
        assert now["unknown"]["process_used"] == "the machine's device is unknown"
        assert now["unknown"]["explained"] == "the size of a context is unknown and would be part of it"
        # What is known stays known.
        assert now["framework"]["unservable_bytes"] == 11 * MIB and now["modules_bytes"] == 3 * MIB


@pytest.mark.slow
def test_the_live_page_shows_the_sum_in_a_real_browser(held):
    playwright = pytest.importorskip("playwright.sync_api")
    with serving(env=held.env) as server, playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=needs("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.port}/")
        sum_table = page.locator("#recordings table", has_text="cuda:0 is nvidia:0")
        sum_table.wait_for()
        rows = [row.split("\t") for row in sum_table.inner_text().splitlines()]
        browser.close()
    said = {row[0].strip(): row[1].strip() for row in rows if len(row) > 1}
    assert said["in pinned segments"] == "11.0 MiB" and said["unexplained"] == "+6.00 MiB"
    assert said["libcublas.so.12"] == "32.0 MiB" and said["no known process"] == "+4.00 MiB"
    assert not errors
