"""A server and a terminal to look at, beside a recorded program that stands still."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time

import harness
import pytest

TOKEN = "a-token-of-the-tests"


def needs(tool):
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"no {tool} here: scripts/setup live installs it")
    return path


class Server:
    def __init__(self, process, port):
        self.process, self.port = process, port

    def get(self, path, headers=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response, body

    def metrics(self, **labels):
        """{(name, device): value} of the samples that have these labels; device is None where there is none."""
        _, text = self.get("/metrics")
        found = {}
        for name, said, value in re.findall(r"^(\w+)(\{[^\n]*\})? (\S+)$", text, re.MULTILINE):
            sample = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', said))
            if all(sample.get(k) == str(v) for k, v in labels.items()):
                found[name, sample.get("device")] = float(value)
        return found


@contextlib.contextmanager
def serving(*options, env=None):
    argv = [harness.COMMAND, "serve", "--listen", "127.0.0.1:0", *[str(o) for o in options]]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            line = process.stdout.readline()
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1])
            yield Server(process, port)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


def picture(*options):
    done = harness.execute([harness.COMMAND, "top", "--once", "--format", "json", *options]).ok()
    return json.loads(done.stdout)


class Tmux:
    """A terminal of its own server, so that nobody's own tmux is touched."""

    def __init__(self, folder, width, height, argv, env):
        self.base = [needs("tmux"), "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self.env = dict(os.environ, LC_ALL="C.UTF-8", SHELL="/bin/sh", **env)
        for name in ("TMUX", "COLUMNS", "LINES"):  # the last two, which a runner of tests sets, would be the size of the screen
            self.env.pop(name, None)
        command = "trap : INT; " + " ".join(f"'{a}'" for a in argv) + "; echo ended: $?; sleep 60"
        self.run("new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(folder), command)

    def run(self, *arguments):
        return subprocess.run([*self.base, *arguments], env=self.env, check=True, capture_output=True, text=True).stdout

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def lines(self):
        return self.run("capture-pane", "-p").split("\n")[:-1]

    def until(self, wanted, seconds=60):
        """The screen once `wanted` (a regular expression) is on it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines = self.lines()
            if re.search(wanted, "\n".join(lines), re.MULTILINE):
                return lines
            time.sleep(0.1)
        raise AssertionError(f"no {wanted!r} in\n" + "\n".join(lines))


@contextlib.contextmanager
def terminal(folder, width, height, argv, **env):
    tmux = Tmux(folder, width, height, argv, env)
    try:
        yield tmux
    finally:
        subprocess.run([*tmux.base, "kill-server"], check=False, capture_output=True)
