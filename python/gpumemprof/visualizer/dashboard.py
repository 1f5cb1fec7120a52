"""A live page of a profiler or tracker, served by a thread of this process, on the loopback address only."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from .._analysis.inputs import collect
from .._analysis.measured import Measured
from .._core.native import native
from ._page import run_answer, whole

_SHARE = 20


class Dashboard:
    """Shows `source` (anything that MemoryVisualizer accepts) and refreshes it every `interval_s` seconds.

    `port` 0 picks a free one; `url` has the result. Raises OSError with the port if it is in use, ValueError for an
    interval that is not positive.
    """

    def __init__(self, source: Any, port: int = 8050, host: str = "127.0.0.1", interval_s: float = 1.0) -> None:
        if not interval_s > 0:
            raise ValueError(f"interval_s must be > 0, not {interval_s!r:.40}")
        collect(source)  # what is no source fails here, not in a thread
        self.source = source
        self._interval_s = interval_s
        self._host, self._port = host, port
        self._lock = threading.Lock()
        self._last: Measured | None = None
        self._next_s = 0.0
        self._server: Any = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        port = self._server.server_port if self._server else self._port
        return f"http://{self._host}:{port}"

    def start(self) -> None:
        """Begins serving. The thread is a daemon: the page ends with the program."""
        if self._server is not None:
            return
        try:
            self._server = _Server((self._host, self._port), _handler(self))
        except OSError as error:
            raise OSError(
                error.errno,
                f"port {self._port} of {self._host} cannot be used ({error.strerror}); port=0 takes a free one",
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="gpumemprof dashboard", daemon=True)
        self._thread.start()
        print(f"gpumemprof: dashboard at {self.url}", flush=True)

    def wait(self) -> None:
        """Waits until stop() or Ctrl-C."""
        try:
            while self._thread is not None and self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """Ends the thread and frees the port. May be called twice."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        if self._thread is not None:
            self._thread.join()

    def measured(self) -> Measured:
        """What the source holds now, or held a moment ago: to ask takes at most a twentieth of the program's time."""
        with self._lock:
            begin = time.monotonic()
            if self._last is None or begin >= self._next_s:
                try:
                    self._last = collect(self.source)
                except (OSError, ValueError) as error:  # a file that is gone, or is being written
                    self._last = Measured(unknown=str(error))
                end = time.monotonic()
                self._next_s = end + _SHARE * (end - begin)
            return self._last

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, type and body: of the page, and of what it asks for every `interval_s` seconds."""
        if path == "/":
            return 200, "text/html; charset=utf-8", str(native().page_with("")).encode()
        if path == "/api/v1/run":
            body = json.dumps(run_answer(whole(self.measured()), self._interval_s))
            return 200, "application/json", body.encode()
        return 404, "application/json", b'{"error": "there is no such request"}'

    def has_name(self, host: str) -> bool:
        """A page elsewhere could be resolved to this address and read the answers: only our own name is answered."""
        return host.rsplit(":", 1)[0] in ("127.0.0.1", "localhost", "[::1]", self._host)

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">gpumemprof dashboard</a>'


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error of the program's."""


def _handler(dashboard: Dashboard) -> type[BaseHTTPRequestHandler]:
    headers = [line.split(": ", 1) for line in native().page_headers().split("\r\n") if line]

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_GET(self) -> None:
            if dashboard.has_name(self.headers.get("Host", "")):
                status, kind, body = dashboard.answer(urlsplit(self.path).path)
            else:
                status, kind, body = 403, "text/plain; charset=utf-8", b"this is not the address of the page\n"
            self.send_response(status)
            fields = [["Content-Type", kind], ["Content-Length", str(len(body))], ["Cache-Control", "no-store"]]
            for name, value in [*fields, ["X-Content-Type-Options", "nosniff"], *headers]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """It would be in the program's own output."""

    return Handler
