"""A page that follows a profiler or tracker: served by a thread of this process, on the loopback address only."""

from __future__ import annotations

import threading
import time
from typing import Any

from .._analysis.inputs import collect
from .._analysis.measured import Measured, format_size
from . import _interactive
from ._functions import METRICS, rows_of
from ._style import GREY, require, subtitle

_PAGE = {"fontFamily": "system-ui, sans-serif", "maxWidth": "1300px", "margin": "0 auto", "padding": "12px 20px"}
_SHARE = 20
_MOST_ROWS = 200  # calls of one function in the table: the page is for looking, export_data is for all


class Dashboard:
    """Shows `source` (what MemoryVisualizer takes) and asks it again every `interval_s` seconds.

    `port` 0 takes a free one; `url` says which it became. Errors: ImportError that names the extra; OSError with the
    port where it is taken; ValueError for an interval that is not positive."""

    def __init__(self, source: Any, port: int = 8050, host: str = "127.0.0.1", interval_s: float = 1.0) -> None:
        if not interval_s > 0:
            raise ValueError(f"interval_s must be > 0, not {interval_s!r:.40}")
        collect(source)  # what is no source fails here, not in a thread
        self.source = source
        self.app = _make_app(self, interval_s)
        self._host, self._port = host, port
        self._lock = threading.Lock()
        self._last: Measured | None = None
        self._next_s = 0.0
        self._revision = 0
        self._server: Any = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        port = self._server.port if self._server else self._port
        return f"http://{self._host}:{port}"

    def start(self) -> None:
        """Serves from now on. The thread is a daemon: a program that ends takes its page with it."""
        if self._server is not None:
            return
        serving = require("werkzeug.serving")
        # werkzeug ends the process where a port is taken, so that is used before; and its log of requests would
        # be in the program's own output.
        _check_port(self._host, self._port)

        class Silent(serving.WSGIRequestHandler):  # type: ignore[misc, name-defined]
            def log(self, type: str, message: str, *args: Any) -> None:
                pass

        self._server = serving.make_server(
            self._host, self._port, self.app.server, threaded=True, request_handler=Silent
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="gpumemprof dashboard", daemon=True)
        self._thread.start()
        print(f"gpumemprof: dashboard at {self.url}", flush=True)

    def wait(self) -> None:
        """Until stop() or Ctrl-C."""
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
        return self.look()[0]

    def look(self) -> tuple[Measured, int]:
        """The same, and a number that rises whenever the source was asked again."""
        with self._lock:
            begin = time.monotonic()
            if self._last is None or begin >= self._next_s:
                try:
                    self._last = collect(self.source)
                except (OSError, ValueError) as error:  # a file that is gone, or is being written
                    self._last = Measured(unknown=str(error))
                self._revision += 1
                end = time.monotonic()
                self._next_s = end + _SHARE * (end - begin)
            return self._last, self._revision

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">gpumemprof dashboard</a>'


def _check_port(host: str, port: int) -> None:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise OSError(
                error.errno, f"port {port} of {host} cannot be used ({error.strerror}); port=0 takes a free one"
            ) from error


def _make_app(dashboard: Dashboard, interval_s: float) -> Any:
    dash = require("dash")
    # Everything comes from this process: the page works without a network.
    app = dash.Dash("gpumemprof", title="gpumemprof", update_title=None, serve_locally=True)
    html, dcc = dash.html, dash.dcc
    app.layout = html.Div(
        style=_PAGE,
        children=[
            html.H2("GPU memory", style={"marginBottom": "2px"}),
            html.Div(id="facts", style={"color": GREY, "marginBottom": "8px"}),
            dcc.Graph(id="timeline", config={"displaylogo": False}),
            html.Div(
                style={"display": "flex", "alignItems": "center", "gap": "10px"},
                children=[
                    html.Label("Functions by", htmlFor="metric"),
                    dcc.Dropdown(
                        id="metric",
                        options=METRICS,
                        value="peak_memory",
                        clearable=False,
                        style={"minWidth": "420px"},
                    ),
                ],
            ),
            dcc.Graph(id="functions", config={"displaylogo": False}),
            html.Div(id="details", children="Click on a function to see its calls."),
            dcc.Store(id="shown"),
            dcc.Interval(id="tick", interval=int(interval_s * 1000)),
        ],
    )

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        dash.Output("timeline", "figure"), dash.Output("functions", "figure"), dash.Output("facts", "children"),
        dash.Output("shown", "data"), dash.Input("tick", "n_intervals"), dash.Input("metric", "value"),
        dash.State("shown", "data"),
    )  # fmt: skip
    def follow(_: Any, metric: str, shown: Any) -> tuple[Any, Any, Any, Any]:
        measured, revision = dashboard.look()
        if shown == [revision, metric]:  # this page has it already
            return (dash.no_update,) * 4
        if measured.empty:
            return _empty(measured), _empty(measured), measured.unknown, [revision, metric]
        timeline = _interactive.timeline(measured)
        try:
            functions = _interactive.functions(measured, rows_of(measured, metric), metric)
        except ValueError:  # a tracker has no functions
            functions = _empty(Measured(unknown="no functions were profiled"))
        for figure in (timeline, functions):
            figure.update_layout(uirevision="kept")  # a zoom survives the next poll
        return timeline, functions, _facts(measured), [revision, metric]

    @app.callback(dash.Output("details", "children"), dash.Input("functions", "clickData"),  # type: ignore[untyped-decorator, unused-ignore]
                  dash.Input("tick", "n_intervals"))  # fmt: skip
    def drill_down(click: Any, _: Any) -> Any:
        if not click:
            return "Click on a function to see its calls."
        return _details(dash, dashboard.measured(), str(click["points"][0]["customdata"]))

    # A page elsewhere could be resolved to this address and read the answers: only our own name is answered.
    flask = require("flask")

    @app.server.before_request  # type: ignore[untyped-decorator, unused-ignore]
    def own_name_only() -> Any:
        host = flask.request.host.rsplit(":", 1)[0]
        if host not in ("127.0.0.1", "localhost", "[::1]", dashboard._host):
            return f"unknown host {host!r:.80}", 403
        return None

    return app


def _facts(measured: Measured) -> str:
    calls = sum(function.call_count for function in measured.functions.values())
    words = [subtitle(measured)]
    if calls:
        words.append(f"{calls} calls of {len(measured.functions)} functions")
    if len(measured.series):
        words.append(f"{len(measured.series)} samples")
    if measured.limit_bytes:
        words.append(f"limit {format_size(measured.limit_bytes)}")
    return " · ".join(words)


def _details(dash: Any, measured: Measured, name: str) -> Any:
    html = dash.html
    own = [call for call in measured.calls if call.name == name]
    function = measured.functions.get(name)
    if function is None:
        return f"{name} is not listed any more."
    head = (
        f"{function.call_count} calls, {function.total_time_s:.4g} s; the last {min(len(own), _MOST_ROWS)} of them:"
    )
    columns = ("call", "peak", "over its start", "kept", "seconds")
    rows = []
    for number, call in list(enumerate(own, 1))[-_MOST_ROWS:]:
        sizes = [call.peak_bytes, call.peak_over_start_bytes, call.kept_bytes]
        cells = [
            str(number),
            *("not known" if s is None else format_size(s) for s in sizes),
            f"{call.duration_s:.4g}",
        ]
        rows.append(html.Tr([html.Td(cell, style={"padding": "2px 14px", "textAlign": "right"}) for cell in cells]))
    table = html.Table(
        [html.Thead(html.Tr([html.Th(c, style={"padding": "2px 14px"}) for c in columns])), html.Tbody(rows)]
    )
    return [html.H3(name), html.P(head), table]


def _empty(measured: Measured) -> Any:
    figure = require("plotly.graph_objects").Figure()
    figure.update_layout(template="plotly_white", xaxis={"visible": False}, yaxis={"visible": False}, height=200)
    figure.add_annotation(text=measured.unknown or "nothing yet", showarrow=False, font={"size": 15, "color": GREY})
    return figure
