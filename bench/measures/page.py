"""What `view` answers: how soon after the command, how fast for a window of millions of events, and how a browser keeps up."""
import contextlib
import functools
import gzip
import json
import os
import random
import shutil
import subprocess
import time
import urllib.request

import launch
from rows import Row

FIRST_S, AGAIN_S = 2.5, 0.5
TWO_FILES_S = 6
FRAME_MS, CLICK_MS, HEAP_BYTES, CODE_BYTES = 33, 100, 150e6, 150_000
WINDOW_MS = 5
SEARCH_MS = 300
MEMORY = 0.5  # ÷ the file


class Served:
    """A running `view`; get() answers seconds and the body."""

    def __init__(self, *arguments):
        self.begin = time.monotonic()
        self.process = subprocess.Popen([launch.gpumemprof(), "view", "--no-browser", "--port", "0", *arguments], stdout=subprocess.PIPE, text=True)
        self.url = "http://" + self.process.stdout.readline().split("http://")[1].split(" ")[0]
        self.address, self.token = self.url.removeprefix("http://").split("/?token=")

    def get(self, what, **query):
        text = "&".join(f"{name}={value}" for name, value in query.items())
        begin = time.monotonic()
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{what}?token={self.token}&{text}") as reply:
            return time.monotonic() - begin, reply.read()

    def run(self):
        """What is known of the main device, once all is read."""
        while True:
            answer = json.loads(self.get("run")[1])
            if "loading" not in answer:
                return next(device for device in answer["files"][0]["devices"] if device["is_main"])
            time.sleep(0.01)

    def peak_rss(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Browser:
    """A headless Chromium that is told what to do: bench/web/browser.mjs."""

    def __init__(self):
        self.process = subprocess.Popen(["node", os.path.join(launch.BENCH, "web", "browser.mjs")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise launch.Failed("Chromium does not start: scripts/setup web-tests")

    def ask(self, what, address, count=0):
        self.process.stdin.write(json.dumps({"do": what, "address": address, "count": count}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise launch.Failed(f"{what}: {answer['error']}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def windows(served, events, count):
    """Seconds of windows of every length, anywhere."""
    chance = random.Random(1)
    seconds = []
    for _ in range(count):
        length = max(2, int(events * 2 ** -chance.uniform(0, 14)))
        begin = chance.randrange(0, max(1, events - length))
        seconds.append(served.get("levels", by="category", columns=1500, **{"from": begin, "to": begin + length})[0])
    return seconds


def opened(browser, *arguments):
    """Seconds from the command to the first complete picture; the server goes on."""
    served = Served(*arguments)
    browser.ask("picture", served.url)
    return time.monotonic() - served.begin, served


def opening_rows(browser, what, path, repeats, first_bound):
    """The first and the second time, in turn: the first leaves the index that the second reads."""
    first, again = [], []
    for _ in range(repeats):
        for times, options in ((first, ["--no-index"]), (again, [])):
            seconds, served = opened(browser, *options, path)
            times.append(seconds)
            served.end()
        if len(again) == 1:  # that was no second time: it made the index
            again.clear()
            seconds, served = opened(browser, path)
            again.append(seconds)
            served.end()
    rows = []
    for text, times, bound in (("", first, first_bound), (", the second time", again, AGAIN_S)):
        middle = sorted(times)[len(times) // 2]
        rows.append(Row(f"`view` of a {what}, from the command to the first complete picture{text}", f"{middle:.2f} s", f"≤ {bound:g} s",
                        middle <= bound, raw={"seconds": times}))
    return rows


def frame_rows(browser, served, events):
    rows = []
    for by in ("category", "stack", "blocks"):
        late = percentile(browser.ask("frames", f"{served.url}#by={by}", 160)["ms"], 0.95)
        rows.append(Row(f"frames while {events:,} events by {by} are moved and zoomed, 95 of 100", f"{late:.0f} ms", f"≤ {FRAME_MS} ms", late <= FRAME_MS))
    heap = browser.ask("heap", served.url)["bytes"]
    rows.append(Row("the page's heap, after five views of them", f"{heap / 1e6:.0f} MB", f"≤ {HEAP_BYTES / 1e6:.0f} MB", heap <= HEAP_BYTES))
    return rows


def click_row(browser, served):
    """Of the slowest of eight clicks on different blocks."""
    clicks = browser.ask("click", f"{served.url}#by=blocks", 8)["ms"]
    if len(clicks) < 4:
        raise launch.Failed(f"{len(clicks)} of 8 clicks met a block")
    return Row("from a click on a block to its stack", f"{max(clicks):.0f} ms", f"≤ {CLICK_MS} ms", max(clicks) <= CLICK_MS)


def answer_rows(served, events):
    late = percentile(windows(served, events, 1000), 0.99) * 1000
    search = served.get("search", q="conv%20bytes>4MiB", columns=1500)[0] * 1000
    return [
        Row(f"a window of {events:,} events, 99 of 100", f"{late:.1f} ms", f"≤ {WINDOW_MS} ms", late <= WINDOW_MS),
        Row(f"a search over {events:,} events, the first time", f"{search:.0f} ms", f"≤ {SEARCH_MS} ms", search <= SEARCH_MS),
    ]


def measure_snapshot(size):
    with contextlib.closing(Browser()) as browser, launch.folder() as folder:
        path, other = os.path.join(folder, "snapshot.pickle"), os.path.join(folder, "other.pickle")
        made = launch.run_json(launch.program("make_snapshot.py", path, "--bytes", size["snapshot_bytes"]))
        what = f"{made['bytes'] / 1e9:.2g} GB snapshot"
        rows = opening_rows(browser, what, path, size["analysis_repeats"], FIRST_S)
        served = Served("--no-index", path)
        rows += answer_rows(served, served.run()["events"])
        rows.append(click_row(browser, served))
        memory = served.peak_rss() / made["bytes"]
        served.end()
        rows.append(Row("the server's peak memory ÷ the file", f"{memory:.2f}×", f"≤ {MEMORY}×", memory <= MEMORY))
        shutil.copy(path, other)
        served = Served("--no-index", path, other)
        served.run()
        served.get("compare", other=1)
        both = time.monotonic() - served.begin
        served.end()
        rows.append(Row(f"two files of {what.split(' snap')[0]} compared, from the command to the answer", f"{both:.2f} s", f"≤ {TWO_FILES_S} s", both <= TWO_FILES_S))
        return rows


def measure_recording(size):
    with contextlib.closing(Browser()) as browser, launch.folder() as folder:
        events = size["page_events"]
        launch.run([launch.helper("make_recording"), folder, "--events", str(events), "--live", "10000"])
        launch.run([launch.gpumemprof(), "seal", folder])  # as `run` leaves it
        rows = opening_rows(browser, f"recording of {events:,} events", folder, size["analysis_repeats"], FIRST_S)
        served = Served(folder)
        served.run()
        rows += frame_rows(browser, served, events)
        served.end()
        return rows


def measure_long(size):
    """Progress is told, and the page answers meanwhile."""
    with launch.folder() as folder:
        events = size["page_long_events"]
        launch.run([launch.helper("make_recording"), folder, "--events", str(events), "--live", "10000"])
        launch.run([launch.gpumemprof(), "seal", folder])
        served = Served("--no-index", folder)
        waits, shares = [], []
        while True:
            seconds, body = served.get("run")
            waits.append(seconds)
            loading = json.loads(body).get("loading")
            if loading is None:
                break
            shares.append(loading["share"])
            time.sleep(0.05)
        whole = time.monotonic() - served.begin
        served.end()
        if sorted(shares) != shares:
            raise launch.Failed("progress went back")
        return [
            Row(f"`view` of a recording of {events:,} events, to its figures", f"{whole:.1f} s", "≤ 15 s", whole <= 15),
            Row("the longest answer meanwhile", f"{max(waits) * 1000:.0f} ms", "≤ 100 ms", max(waits) <= 0.1),
        ]


def measure_code(_):
    with open(os.path.join(launch.BUILD, "page.html"), "rb") as file:
        code = len(gzip.compress(file.read()))
    return [Row("the page's code, gzipped", f"{code / 1000:.0f} kB", f"≤ {CODE_BYTES / 1000:.0f} kB", code <= CODE_BYTES)]


def parts(size):
    return [functools.partial(measure, size) for measure in (measure_snapshot, measure_recording, measure_long, measure_code)]
