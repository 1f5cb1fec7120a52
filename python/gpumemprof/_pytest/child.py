"""The process of one test, which parent.py starts. Recorded is what the test's body allocates."""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import warnings
from collections.abc import Generator
from typing import Any

import pytest

from .plugin import CHILD

_FRAMEWORKS = ("torch", "tensorflow", "jax")
# Types of counters (gpumemprof.h), as the kinds of devices in measurements.
_COUNTED = {"cpu": (0, 64, 72), "cuda": (1,), "xpu": (12,)}
_MOST_DEVICES = 16


class _Recording:
    """The probe of this process, which `gate` has loaded into it."""

    def __init__(self) -> None:
        self._probe: Any = ctypes.CDLL(None)
        self._call("stop")
        try:
            from .._core.native import native

            self._native = native() if native().counting_begin() else None
        except ImportError:
            self._native = None

    def _call(self, name: str) -> None:
        function = getattr(self._probe, f"gpumemprof_{name}", None)
        if function is not None:
            function()

    def start(self) -> None:
        self._call("start")

    def stop(self) -> None:
        self._call("stop")

    def live_bytes(self) -> dict[str, int]:
        """By kind of device, of the one that holds most; empty if nobody counts."""
        live: dict[str, int] = {}
        if self._native is None:
            return live
        for kind, types in _COUNTED.items():
            counted = (self._native.counters(one, index) for one in types for index in range(_MOST_DEVICES if one != 0 else 1))
            live[kind] = max((counters[0] for counters in counted if counters), default=0)
        return {kind: size for kind, size in live.items() if size}


class Child:
    """Keeps the one test, records its body, and writes its reports."""

    def __init__(self, config: Any, spec: dict[str, Any], recording: _Recording) -> None:
        self._config, self._spec, self._recording = config, spec, recording
        self._out = open(spec["reports"], "w")  # noqa: SIM115: for as long as the process lives

    def _write(self, line: dict[str, Any]) -> None:
        self._out.write(json.dumps(line, default=str) + "\n")
        self._out.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid == self._spec["nodeid"]][:1]

    @pytest.hookimpl(hookwrapper=True, trylast=True)  # inside of other plugins' wrappers
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, None]:
        if self._spec["warmups"]:
            item.runtest()
        gc.collect()
        before = self._recording.live_bytes()
        self._recording.start()
        outcome = yield
        if outcome.excinfo is None:
            gc.collect()  # else the traceback holds what the test did
        self._recording.stop()
        loaded = [name for name in _FRAMEWORKS if name in sys.modules]
        why = "" if loaded else "the test loaded neither PyTorch nor TensorFlow nor JAX"
        self._write({"about": {"before_bytes": before, "nothing_because": why}})

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._write({"report": self._config.hook.pytest_report_to_serializable(config=self._config, report=report)})

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        category = warning_message.category.__name__
        self._write({"warning": {"message": f"{category}: {warning_message.message}", "filename": warning_message.filename,
                                 "lineno": warning_message.lineno, "when": when, "nodeid": nodeid}})  # fmt: skip

    def pytest_sessionfinish(self, session: Any) -> None:
        if not session.items:
            self._write({"lost": True})


def main() -> None:
    recording = _Recording()
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    sys.path[:], sys.argv[:] = spec["sys_path"], spec["argv"]
    config = pytest.Config.fromdictargs(spec["options"], [spec["path"]])
    if spec["worker"] is not None:
        config.workerinput, config.workeroutput = spec["worker"], {}  # type: ignore[attr-defined]
    config.pluginmanager.register(Child(config, spec, recording), CHILD)
    sys.exit(config.hook.pytest_cmdline_main(config=config))
