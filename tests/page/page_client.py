"""A reader of the page's answers that shares nothing with the writer: docs/page-data.md, in Python."""

import json
import struct
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

NONE = 0xFFFFFFFF
WIDTH = {"u8": ("B", 1), "u16": ("H", 2), "u32": ("I", 4), "f64": ("d", 8)}


def columns(answer):
    """The header and the columns of an answer, each as a list."""
    assert answer[:4] == b"GMPC"
    (length,) = struct.unpack_from("<I", answer, 4)
    header = json.loads(answer[8 : 8 + length].decode("utf-8"))
    out = {}
    for name, column in header["columns"].items():
        code, width = WIDTH[column["type"]]
        assert column["offset"] % 8 == 0 and column["offset"] >= 8 + length
        assert column["offset"] + column["length"] * width <= len(answer)
        out[name] = list(struct.unpack_from(f"<{column['length']}{code}", answer, column["offset"]))
    return header, out


class Page:
    """What a running `view` answers."""

    def __init__(self, address, token):
        self.address, self.token = address, token

    def get(self, path, headers=None, method="GET", has_token=True, **query):
        """Status, type and body."""
        if has_token:
            query["token"] = self.token
        text = urllib.parse.urlencode(query)
        request = urllib.request.Request(f"http://{self.address}{path}?{text}", method=method, headers=headers or {})
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def ask(self, what, /, **query):
        """The header and the columns of an answer that has some; the object of one that is JSON."""
        status, headers, body = self.get(f"/api/v1/{what}", **query)
        assert status == 200, (what, query, body[:300])
        return json.loads(body) if headers["Content-Type"] == "application/json" else columns(body)

    def refusal(self, what, /, status=400, **query):
        """What a request is refused with: one line."""
        got, headers, body = self.get(f"/api/v1/{what}", **query)
        assert got == status, body[:300]
        error = json.loads(body)
        assert "\n" not in error["error"] and error["error"]
        return error

    def run(self):
        """`run`, once everything is read."""
        for _ in range(600):
            answer = self.ask("run")
            if "loading" not in answer:
                return answer
            time.sleep(0.05)
        raise AssertionError("the file is never read")


@contextmanager
def page_of(command, *paths):
    """`view` of these files, and its end."""
    with served(command, *paths) as (page, _):
        yield page


@contextmanager
def served(command, *arguments, **options):
    """The same, with its process."""
    process = subprocess.Popen([*command, "view", "--no-browser", "--port", "0", *map(str, arguments)], stdout=subprocess.PIPE, text=True, **options)
    try:
        line = process.stdout.readline()
        address, token = line.split("http://")[1].split(" ")[0].split("#")[0].split("/?token=")
        yield Page(address, token), process
    finally:
        process.terminate()
        assert process.wait(10) == 0
        process.stdout.close()
