"""OTLP as OpenTelemetry's own classes read it: the figures are those of /metrics and of the fake driver's board."""

import contextlib
import http.server
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import harness
import pytest
from live_helpers import serving

MIB = 1 << 20
FAKES = Path(os.environ.get("GPUMEMPROF_FAKES", harness.ROOT / "build" / "tests" / "fakes"))
BOARDS = harness.ROOT / "tests" / "fakes" / "nvml" / "boards"


class Collector:
    """Takes what is pushed; `answers` are statuses for the first pushes, then 200."""

    def __init__(self, answers=()):
        self.requests, answers = [], list(answers)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = answers.pop(0) if answers else 200
                outer.requests.append((self.path, dict(self.headers), body, status))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def taken(self, count):
        """The requests that were answered with 200, once there are `count`."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            done = [one for one in self.requests if one[3] == 200]
            if len(done) >= count:
                return done
            time.sleep(0.05)
        raise AssertionError(f"{len(self.requests)} requests came")


@contextlib.contextmanager
def collecting(answers=()):
    collector = Collector(answers)
    try:
        yield collector
    finally:
        collector.server.shutdown()


def decoded(body):
    """{metric: (unit, kind, [(attributes, value)])}, and the resource's attributes."""
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    request = service.ExportMetricsServiceRequest.FromString(body)
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "gpumemprof"

    def attributes(pairs):
        return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}

    metrics = {}
    for metric in scope.metrics:
        kind = metric.WhichOneof("data")
        data = getattr(metric, kind)
        if kind == "sum":
            assert data.aggregation_temporality == 2
            kind = "counter" if data.is_monotonic else "updown"
        points = [(attributes(p.attributes), getattr(p, p.WhichOneof("value"))) for p in data.data_points]
        assert metric.name not in metrics and points and all(p.time_unix_nano > 10**18 for p in data.data_points)
        metrics[metric.name] = (metric.unit, kind, points)
    return metrics, attributes(resource.resource.attributes)


def value(metrics, name, **attributes):
    wanted = {key.replace("__", "."): text for key, text in attributes.items()}.items()
    found = [number for said, number in metrics[name][2] if wanted <= said.items()]
    assert len(found) == 1, (name, found)
    return found[0]


@pytest.fixture
def gpus(tmp_path):
    if not (FAKES / "nvml-3").is_dir():
        pytest.skip("the fakes are not built")
    return {**os.environ, "LD_LIBRARY_PATH": str(FAKES / "nvml-3"), "FAKE_NVML_BOARD": str(BOARDS / "a100-80gb.yaml")}


def test_devices_follow_the_semantic_conventions(gpus):
    with collecting() as collector, serving("--otlp", collector.url, env=gpus):
        (path, headers, body, _), *_ = collector.taken(1)
    assert path == "/v1/metrics" and headers["Content-Type"] == "application/x-protobuf"
    metrics, resource = decoded(body)
    assert resource["service.name"] == "gpumemprof" and resource["host.name"] == os.uname().nodename
    used = (20314 + 633) * MIB
    who = {
        "hw.id": "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", "hw.type": "gpu", "hw.name": "nvidia:0",
        "hw.model": "NVIDIA A100-SXM4-80GB", "hw.vendor": "nvidia", "hw.driver_version": "550.163.01",
    }  # fmt: skip
    assert metrics["hw.gpu.memory.limit"] == ("By", "updown", [(who, 81920 * MIB)])
    assert metrics["hw.gpu.memory.usage"] == ("By", "updown", [(who, used)])
    assert metrics["hw.gpu.memory.utilization"] == ("1", "gauge", [(who, used / (81920 * MIB))])
    assert metrics["hw.gpu.utilization"] == ("1", "gauge", [(who, 0.87)])


def test_recordings_have_the_figures_of_the_metrics(standing):
    # A push a second, so that one comes after the scrape.
    with collecting() as collector, serving("--otlp", collector.url, "--otlp-interval", "1") as server:
        collector.taken(1)
        scraped = server.metrics(pid=standing.pid)
        *_, (_, _, body, _) = collector.taken(2)
    metrics, _ = decoded(body)
    for prometheus, otlp, unit, kind in [
        ("recording_allocated_bytes", "recording.allocated", "By", "gauge"),
        ("recording_peak_bytes", "recording.peak", "By", "gauge"),
        ("recording_live_blocks", "recording.live_blocks", "1", "gauge"),
        ("recording_allocations_total", "recording.allocations", "1", "counter"),
        ("recording_frees_total", "recording.frees", "1", "counter"),
    ]:
        assert metrics[f"gpumemprof.{otlp}"][:2] == (unit, kind)
        found = value(metrics, f"gpumemprof.{otlp}", process__pid=standing.pid, device="cpu")
        assert found == scraped[f"gpumemprof_{prometheus}", "cpu"] > 0
    assert value(metrics, "gpumemprof.recording.events", process__pid=standing.pid) == 6
    assert not [name for name in metrics if name.startswith("hw.")] or os.path.exists("/proc/driver/nvidia")


def test_a_busy_collector_is_asked_again_and_all_is_counted():
    with collecting(answers=[503, 400]) as collector:
        with serving("--otlp", collector.url, "--otlp-interval", "1", "--otlp-header", "X-Scope=a b") as server:
            collector.taken(1)
            end = time.monotonic() + 60
            while time.monotonic() < end:
                _, text = server.get("/metrics")
                said = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("gpumemprof_otlp"))
                if said['gpumemprof_otlp_messages_total{result="sent"}'] != "0":
                    break
                time.sleep(0.1)
    assert said["gpumemprof_otlp_retries_total"] == "1"
    # 503 was tried again, and then 400 said that it never will do.
    assert said['gpumemprof_otlp_messages_total{result="lost"}'] == "1"
    assert said["gpumemprof_otlp_lost_points_total"] != "0"
    assert collector.requests[0][2] == collector.requests[1][2] != collector.requests[2][2]
    assert all(one[1]["X-Scope"] == "a b" for one in collector.requests)


@pytest.mark.parametrize("options, why", [
    (["--otlp", "https://127.0.0.1:4318"], "https is not spoken: send to a collector on this machine"),
    (["--otlp", "127.0.0.1:4318"], "an address begins with http://"),
    (["--otlp", "http://127.0.0.1:4318", "--otlp-header", "no"], "--otlp-header: a header is NAME=VALUE"),
    (["--otlp", "http://127.0.0.1:4318", "--otlp-interval", "0.1"], "--otlp-interval is from 1 to 86400 seconds"),
])  # fmt: skip
def test_mistakes_are_said_in_one_line(options, why):
    argv = [harness.COMMAND, "serve", "--listen", "127.0.0.1:0", *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_without_a_collector_it_serves_all_the_same():
    with serving("--otlp", "http://127.0.0.1:1") as server:
        response, text = server.get("/metrics")
        assert response.status == 200 and "gpumemprof_otlp_waiting" in text
        assert json.dumps(text)
