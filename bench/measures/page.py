"""What `view` answers: how soon after the command, and how fast for a window of millions of events."""
import functools
import json
import os
import random
import subprocess
import time
import urllib.request

import launch
from rows import Row

FIRST_ANSWER_S = 2.5
WINDOW_MS = 5
SEARCH_MS = 300
MEMORY = 0.5  # ÷ the file


class Served:
    """A running `view`; get() answers seconds and the body."""

    def __init__(self, path):
        self.begin = time.monotonic()
        self.process = subprocess.Popen([launch.gpumemprof(), "view", "--no-browser", "--port", "0", path], stdout=subprocess.PIPE, text=True)
        self.address, self.token = self.process.stdout.readline().split("http://")[1].split(" ")[0].split("/?token=")

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


def measure(size):
    with launch.folder() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        made = launch.run_json(launch.program("make_snapshot.py", path, "--bytes", size["snapshot_bytes"]))
        first = []
        for _ in range(size["analysis_repeats"]):
            served = Served(path)
            events = served.run()["events"]
            served.get("levels", columns=1500)
            first.append(time.monotonic() - served.begin)
            if len(first) < size["analysis_repeats"]:
                served.end()
        seconds = windows(served, events, 1000)
        search = max(served.get("search", q="conv%20bytes>4MiB", columns=1500)[0] for _ in range(1))
        memory = served.peak_rss() / made["bytes"]
        served.end()
    what = f"{made['bytes'] / 1e9:.2g} GB snapshot"
    middle, late = sorted(first)[len(first) // 2], percentile(seconds, 0.99) * 1000
    return [
        Row(f"`view` of a {what}, from the command to the first levels", f"{middle:.2f} s", f"≤ {FIRST_ANSWER_S} s",
            middle <= FIRST_ANSWER_S, raw={"seconds": first}),
        Row(f"a window of {events:,} events, 99 of 100", f"{late:.1f} ms", f"≤ {WINDOW_MS} ms", late <= WINDOW_MS),
        Row(f"a search over {events:,} events, the first time", f"{search * 1000:.0f} ms", f"≤ {SEARCH_MS} ms", search * 1000 <= SEARCH_MS),
        Row("the server's peak memory ÷ the file", f"{memory:.2f}×", f"≤ {MEMORY}×", memory <= MEMORY),
    ]


def parts(size):
    return [functools.partial(measure, size)]
