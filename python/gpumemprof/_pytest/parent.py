"""Runs one test in a process of its own under the recorder, and reports it as if it had run here."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, cast

import pytest

from .._core.page import command
from . import limits

_GATE = "GPUMEMPROF_GATE"  # where `gpumemprof gate` wants the measurements of tests
_number = itertools.count()
_MOST_OUTPUT = 20_000
# The package is there, whatever made it so here, and the environment is the session's.
_START = "import sys; sys.path.append(sys.argv.pop(1)); from gpumemprof._pytest.child import main; main()"
# What of the session's options is not for the process of one test.
_CHILD_OPTIONS: dict[str, Any] = {
    "numprocesses": None, "maxprocesses": None, "dist": "no", "tx": [], "distload": False, "looponfail": False, "usepdb": False,
    "xmlpath": None, "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "stepwise_skip": False, "cacheclear": False,
    "collectonly": False, "keyword": "", "markexpr": "", "deselect": None, "ignore": None, "ignore_glob": None, "maxfail": 0, "pastebin": None, "no_cov": True,
}  # fmt: skip


class _Result:
    """What a child left: its reports in order, and its measurement where it has one."""

    def __init__(self, folder: Path, status: int, output: str) -> None:
        self.status, self.output = status, output
        self.lines = [json.loads(line) for line in _read(folder / "reports.jsonl").splitlines() if line.endswith("}")]
        self.about: dict[str, Any] = next((line["about"] for line in self.lines if "about" in line), {})
        text = _read(folder / "measured.json")
        self.measured: dict[str, Any] = json.loads(text) if text else {}
        self.memories: dict[str, Any] = self.measured.get("program", {})
        for kind, memory in self.memories.items():
            memory["before_bytes"] = self.about.get("before_bytes", {}).get(kind, 0)


def run_measured(item: Any, nextitem: Any) -> None:
    """Instead of pytest's protocol of a test: logs its reports, and fails it where it exceeds a limit."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _reports(item: Any, nextitem: Any) -> list[Any]:
    try:
        wanted = limits.limits_of(item)
        result = _run(item, any(limit.warmups for limit in wanted))
    except (limits.WrongMarker, OSError) as error:
        reports = [_report(item, "setup", "failed", str(error))]
    else:
        reports = _with_limits(item, result, wanted)
        _tell_gate(item, result, reports)
    # Fixtures of modules and classes that earlier tests of this process set up, and no later one needs.
    call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown",
                                     reraise=(pytest.exit.Exception, KeyboardInterrupt))  # fmt: skip
    if call.excinfo is not None:
        reports = [report for report in reports if report.when != "teardown"]
        reports.append(item.ihook.pytest_runtest_makereport(item=item, call=call))
    return reports


def _run(item: Any, warmups: bool) -> _Result:
    folder = Path(tempfile.mkdtemp(prefix="gpumemprof-test-"))
    try:
        spec = folder / "spec.json"
        spec.write_text(json.dumps(_spec(item, folder, warmups)))
        keep = item.config.getoption("gpumemprof_keep")
        recording = ["-o", str(_kept(keep, item.nodeid)), "--force"] if keep else []
        argv = [command(), "gate", "--quiet", "--measured", str(folder / "measured.json"), *recording,
                "--", sys.executable, "-c", _START, str(Path(__file__).resolve().parents[2]), str(spec)]  # fmt: skip
        is_shown = item.config.getoption("capture", "fd") == "no"
        with open(folder / "output", "w+b") as output:
            where = None if is_shown else output
            # In the session's folder, where relative paths of options lead.
            status = _wait(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=where, stderr=where,
                                            cwd=item.config.invocation_params.dir))  # fmt: skip
            output.seek(0)
            text = output.read()[-_MOST_OUTPUT:].decode(errors="replace")
        return _Result(folder, status, text)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except BaseException:  # Ctrl-C: the recorder passes it on to the test
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        raise


def _kept(folder: str, nodeid: str) -> Path:
    return Path(folder).absolute() / re.sub(r"[^\w.-]+", "_", nodeid)[-150:]


def _spec(item: Any, folder: Path, warmups: bool) -> dict[str, Any]:
    config = item.config
    options = {key: value for key, value in vars(config.option).items() if _is_plain(value)}
    options.pop("file_or_dir", None)
    options.update(_CHILD_OPTIONS, rootdir=str(config.rootpath), plugins=[*(options.get("plugins") or []), "no:terminal"])
    if config.inipath is not None:
        options["inifilename"] = str(config.inipath)
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:  # below ours, so that pytest keeps as many as ever
        options["basetemp"] = str(factory.getbasetemp() / f"measured{next(_number)}")
    worker = getattr(config, "workerinput", None)
    return {
        "nodeid": item.nodeid, "path": _nameable(item.path), "reports": str(folder / "reports.jsonl"), "options": options,
        "sys_path": [entry for entry in sys.path if isinstance(entry, str)], "argv": [str(word) for word in sys.argv],
        "worker": {key: value for key, value in worker.items() if _is_plain(value)} if worker else None, "warmups": warmups,
    }  # fmt: skip


def _nameable(path: Path) -> str:
    """What pytest takes as an argument: a bracket it would take for a parameter. More is collected then, and one test kept."""
    while "[" in str(path):
        path = path.parent
    return str(path)


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def _with_limits(item: Any, result: _Result, wanted: list[limits.Limit]) -> list[Any]:
    reports = []
    for line in result.lines:
        if "report" in line:
            reports.append(item.config.hook.pytest_report_from_serializable(config=item.config, data=_with_tuples(line["report"])))
        elif "warning" in line:
            _replay_warning(item, line["warning"])
    reports = [report for report in reports if report is not None]
    if [report.when for report in reports][-1:] != ["teardown"]:
        return _after_a_crash(item, result, reports)
    why = result.about.get("nothing_because")
    if wanted and why and not result.memories and all(report.passed for report in reports):
        item.warn(pytest.PytestWarning(f"nothing was measured: {why}"))
    for report in reports:
        report.user_properties += [  # JUnit's XML has those of the teardown
            (f"{name}_{kind}_bytes", memory[f"{name}_bytes"])
            for kind, memory in sorted(result.memories.items()) for name in ("peak", "before")
        ]  # fmt: skip
        if report.when == "call":
            _apply(report, result, wanted)
    return reports


def _with_tuples(data: dict[str, Any]) -> dict[str, Any]:
    """JSON has made lists of them."""
    for key in ("location", "longrepr"):
        if isinstance(data.get(key), list):
            data[key] = tuple(data[key])
    for key in ("sections", "user_properties"):
        data[key] = [tuple(one) for one in data.get(key, ())]
    return data


def _apply(report: Any, result: _Result, wanted: list[limits.Limit]) -> None:
    strict = isinstance(report.longrepr, str) and report.longrepr.startswith("[XPASS(strict)]")
    if not report.passed and not strict:
        return
    told = [text for text in (limits.exceeded(limit, result.memories) for limit in wanted) if text]
    if not told:
        return
    if strict or hasattr(report, "wasxfail"):  # it was expected to fail, and does
        report.wasxfail = getattr(report, "wasxfail", "") or report.longrepr.partition("[XPASS(strict)]")[2].strip()
        report.outcome = "skipped"
    else:
        report.outcome = "failed"
    report.longrepr = "\n".join(told)


def _after_a_crash(item: Any, result: _Result, reports: list[Any]) -> list[Any]:
    """The test ended its process. What it held until then is told all the same."""
    when = "call" if reports and reports[0].when == "setup" and reports[0].passed else "setup"
    how = f"ended by {signal.Signals(-result.status).name}" if result.status < 0 else f"ended with exit code {result.status}"
    text = f"the test's process {how} before the test was over"
    kind = limits.main_device(result.memories)
    if kind:
        memory = result.memories[kind]
        lines = ", ".join(f"{limits.format_size(line['bytes'], True)} at {limits.place(line)}" for line in memory["lines"][:3])
        text += f"; its peak on {kind} was {limits.format_size(memory['peak_bytes'], True)}: {lines}"
    crash = _report(item, when, "failed", text)
    if result.output.strip():
        crash.sections.append(("Output of the test's process", result.output))
    kept = [report for report in reports if report.when != when]
    return [*kept, crash, _report(item, "teardown", "passed", None)]


def _report(item: Any, when: Any, outcome: Any, text: str | None) -> pytest.TestReport:
    # Nodes of text alone: the message is the whole of it.
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), outcome, cast("Any", text), when)


def _replay_warning(item: Any, said: dict[str, Any]) -> None:
    """As xdist does: the class is not known here."""
    message = warnings.WarningMessage(said["message"], Warning, said["filename"], said["lineno"])
    item.ihook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": message, "when": said["when"], "nodeid": said["nodeid"], "location": None}
    )


def _tell_gate(item: Any, result: _Result, reports: list[Any]) -> None:
    folder = os.environ.get(_GATE)
    if folder and result.memories and not any(report.failed for report in reports):
        out = {**result.measured, "program": {}, "tests": {item.nodeid: result.memories}}
        Path(folder, f"{os.getpid()}-{next(_number)}.json").write_text(json.dumps(out))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
