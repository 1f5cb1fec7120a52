"""The flight recorder: real out-of-memory errors of real processes, and limits that hold."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import nested
import pytest
from harness import PYTHON, execute, record

from gpumemprof import MemoryTracker, OOMFlightRecorder, OOMFlightRecorderConfig, classify_oom_exception
from gpumemprof.oom_flight_recorder import read_bundle

MIB = 1 << 20
FILES = ["environment.json", "events.json", "host.json", "live_memory.json", "manifest.json", "metadata.json"]

# A limit on the address space makes the CPU allocator of PyTorch fail as it does on a machine that is full.
RUN_OUT = """
import json, os, resource, sys, threading, torch
def limit():
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + (512 << 20), -1))
def hold():
    return [torch.empty(4 << 20, dtype=torch.uint8) for _ in range(3)]
def want_too_much():
    return torch.empty(8 << 30, dtype=torch.uint8)
held = hold()
"""


class OutOfMemoryError(RuntimeError):
    pass


OutOfMemoryError.__module__ = "torch"


class ResourceExhaustedError(Exception):
    pass


def chained():
    try:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
    except RuntimeError as error:
        try:
            raise ValueError("training failed") from error
        except ValueError as outer:
            return outer


class Unprintable(Exception):
    def __str__(self):
        raise TypeError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OutOfMemoryError("x"), "torch.cuda.OutOfMemoryError"),
        (ResourceExhaustedError("x"), "tensorflow.ResourceExhaustedError"),
        (MemoryError(), "MemoryError"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "message_pattern:cuda out of memory"),
        (RuntimeError("HIP out of memory"), "message_pattern:hip out of memory"),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried"), "message_pattern:not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "message_pattern:can't allocate memory"),
        (chained(), "message_pattern:cuda out of memory"),
        (ValueError("shapes do not match"), None),
        (KeyboardInterrupt("out of memory"), None),
        (SystemExit(1), None),
        (Unprintable(), None),
    ],
)
def test_out_of_memory_is_told_by_type_message_or_cause(error, reason):
    found = classify_oom_exception(error)
    assert (found.is_oom, found.reason) == (reason is not None, reason)


def test_the_out_of_memory_error_of_pytorch_is_known():
    import torch

    assert classify_oom_exception(torch.OutOfMemoryError("x")).is_oom
    assert classify_oom_exception(torch.cuda.OutOfMemoryError("x")).reason == "torch.cuda.OutOfMemoryError"


class KeepsItsMessage(Exception):
    """As TensorFlow's errors: without arguments, and the text behind a property."""

    def __init__(self, message):
        super().__init__()
        self._message = message

    @property
    def message(self):
        raise AssertionError("code of the program ran")


@pytest.mark.parametrize("text, reason", [
    ("OOM when allocating: failed to allocate memory", "message_pattern:failed to allocate"),
    ("no such file", None),
    (7, None),
])  # fmt: skip
def test_an_error_without_arguments_is_told_by_the_message_that_it_keeps(tmp_path, text, reason):
    error = KeepsItsMessage(text)
    assert classify_oom_exception(error).reason == reason
    path = recorder(tmp_path).dump(reason="test", exception=error, context="c", backend="cpu")
    assert read_bundle(path)["metadata"]["exception_message"] == (text if isinstance(text, str) else "")


def recorder(folder, **options):
    return OOMFlightRecorder(OOMFlightRecorderConfig(enabled=True, dump_dir=str(folder), **options))


def dump(subject, **options):
    return subject.dump(reason="test", exception=MemoryError("m"), context="c", backend="cpu", **options)


def bundles(folder):
    return sorted(path.name for path in Path(folder).iterdir() if path.name.startswith("oom_dump_"))


def size_of(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def test_a_bundle_has_the_documented_files(tmp_path):
    subject = recorder(tmp_path)
    subject.record_event({"event_type": "sample", "memory_allocated": 5})
    path = dump(subject, metadata={"step": 7, "odd": float("nan"), "object": object})
    assert sorted(os.listdir(path)) == FILES
    bundle = read_bundle(path)
    assert bundle["manifest"]["files"] == FILES
    assert (bundle["manifest"]["schema_version"], bundle["manifest"]["event_count"]) == (1, 1)
    assert bundle["manifest"]["bundle_name"] == os.path.basename(path)
    assert bundle["events"] == [{"event_type": "sample", "memory_allocated": 5}]
    metadata = bundle["metadata"]
    assert (metadata["exception_type"], metadata["exception_module"], metadata["exception_message"]) == (
        "MemoryError", "builtins", "m",
    )  # fmt: skip
    assert (metadata["custom_metadata"]["step"], metadata["custom_metadata"]["odd"]) == (7, None)
    assert (bundle["environment"]["pid"], bundle["environment"]["cwd"]) == (os.getpid(), os.getcwd())
    assert bundle["live_memory"]["basis"] is None and "this process is not recorded" in bundle["live_memory"]["reason"]
    assert (os.stat(path).st_mode & 0o777, os.stat(os.path.join(path, "events.json")).st_mode & 0o777) == (0o700, 0o600)


def test_a_recorder_that_is_off_does_nothing(tmp_path):
    subject = OOMFlightRecorder(OOMFlightRecorderConfig(dump_dir=str(tmp_path / "none")))
    subject.record_event({})
    assert dump(subject) is None and subject.snapshot_events() == [] and not (tmp_path / "none").exists()


def test_only_the_last_events_are_kept(tmp_path):
    subject = recorder(tmp_path, buffer_size=3)
    for n in range(10):
        subject.record_event({"n": n})
    assert [e["n"] for e in subject.snapshot_events()] == [7, 8, 9]


def test_the_newest_bundles_stay_and_nothing_else_is_touched(tmp_path):
    (tmp_path / "oom_dump_of_mine").mkdir()
    (tmp_path / "notes.txt").write_text("keep")
    subject = recorder(tmp_path, max_dumps=3)
    names = [os.path.basename(dump(subject)) for _ in range(7)]
    left = [name for name in bundles(tmp_path) if name != "oom_dump_of_mine"]
    assert sorted(left) == sorted(names[-3:])
    assert (tmp_path / "oom_dump_of_mine").is_dir() and (tmp_path / "notes.txt").read_text() == "keep"
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_all_bundles_together_stay_below_the_limit(tmp_path):
    subject = recorder(tmp_path, max_dumps=100, max_total_mb=1, buffer_size=400)
    for n in range(400):
        subject.record_event({"n": n, "text": "x" * 1000})
    for _ in range(5):
        assert dump(subject) is not None
        assert size_of(tmp_path) <= MIB
    assert len(bundles(tmp_path)) == 2  # of some 400 kB each


def test_a_bundle_too_large_by_itself_loses_its_oldest_events(tmp_path):
    subject = recorder(tmp_path, max_total_mb=1, buffer_size=4000)
    for n in range(4000):
        subject.record_event({"n": n, "text": "x" * 1000})
    bundle = read_bundle(dump(subject))
    assert size_of(tmp_path) <= MIB
    assert bundle["events"][-1]["n"] == 3999
    assert bundle["manifest"]["event_count"] == len(bundle["events"]) > 100
    assert bundle["manifest"]["dropped_event_count"] == 4000 - len(bundle["events"])
    assert bundle["metadata"]["captured_event_count"] == 4000


def test_a_bundle_that_cannot_be_small_enough_is_not_written(tmp_path):
    subject = recorder(tmp_path / "d", max_total_mb=1)
    assert dump(subject, metadata={"x": "y" * (2 * MIB)}) is None
    assert "max_total_mb" in subject.last_error and not (tmp_path / "d").exists()


def test_a_folder_that_cannot_be_made_is_no_exception(tmp_path):
    (tmp_path / "file").write_text("")
    subject = recorder(tmp_path / "file" / "dumps")
    assert dump(subject) is None and subject.last_error.startswith("NotADirectoryError")


def test_ranks_that_share_a_folder_keep_its_limits(tmp_path):
    program = f"""
from gpumemprof import OOMFlightRecorder, OOMFlightRecorderConfig
subject = OOMFlightRecorder(OOMFlightRecorderConfig(enabled=True, dump_dir={str(tmp_path)!r}, max_dumps=4))
for n in range(5):
    assert subject.dump(reason="r", exception=MemoryError(), context=None, backend="cpu"), subject.last_error
"""
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert len(bundles(tmp_path)) == 4
    for name in bundles(tmp_path):
        assert sorted(read_bundle(tmp_path / name)) == [file.removesuffix(".json") for file in FILES]


def test_capture_oom_leaves_a_bundle_with_the_events_and_raises_on(tmp_path):
    tracker = MemoryTracker(
        device="cpu", sampling_interval=3600, enable_oom_flight_recorder=True, oom_dump_dir=str(tmp_path), job_id="j"
    )
    tracker.start_tracking()
    error = RuntimeError("CUDA out of memory")
    with pytest.raises(RuntimeError) as raised, tracker.capture_oom("epoch 3", {"step": 9}):
        raise error
    assert raised.value is error
    assert tracker.handle_exception(error) is None  # it has its bundle
    with pytest.raises(KeyError), tracker.capture_oom():
        raise KeyError("no memory of this")
    tracker.stop_tracking()
    (name,) = bundles(tmp_path)
    bundle = read_bundle(tmp_path / name)
    assert tracker.last_oom_dump_path == str(tmp_path / name)
    assert [e["event_type"] for e in bundle["events"]] == ["start", "sample", "error"]
    custom = bundle["metadata"]["custom_metadata"]
    assert (bundle["metadata"]["context"], custom["step"], custom["job_id"]) == ("epoch 3", 9, "j")
    assert custom["tracker_stats"]["peak_memory"] > 0 and custom["sample_total_bytes"] == custom["total_memory_bytes"]
    assert [a.event_type for a in tracker.get_alerts()] == ["error"]


def only_bundle(folder):
    (name,) = bundles(folder)
    return read_bundle(Path(folder) / name)


def test_an_uncaught_error_under_a_recording_leaves_what_was_live_by_stack(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RUN_OUT + """
from gpumemprof.oom_flight_recorder import watch_uncaught_oom
watch_uncaught_oom()
limit()
want_too_much()
""")
    done = record(tmp_path / "recording", [PYTHON, program], ["--quiet"])
    assert done.rc == 1 and b"in want_too_much" in done.stderr  # the traceback is there as ever
    bundle = only_bundle(tmp_path / "recording" / "oom_dumps")
    (device,) = bundle["live_memory"]["devices"]
    assert (device["device"], device["live_bytes"], device["blocks"]) == ("cpu", 12 * MIB, 3)
    (holder,) = device["holders"]
    assert (holder["bytes"], holder["count"]) == (12 * MIB, 3)
    assert [frame.split()[-1] for frame in holder["stack"]][-2:] == ["hold", "<module>"]
    assert bundle["metadata"]["context"] == "uncaught" and bundle["metadata"]["backend"] == "cpu"
    assert "8589934592" in bundle["metadata"]["exception_message"]


def test_an_attached_process_leaves_what_was_live_since_then(tmp_path):
    program = """
import sys, torch, gpumemprof
gpumemprof.attach(sys.argv[1])
from gpumemprof._recorded import standing
standing.arm(sys.argv[1])
""" + RUN_OUT + "limit()\nwant_too_much()\n"
    (tmp_path / "program.py").write_text(program)
    done = nested.execute([PYTHON, tmp_path / "program.py", tmp_path / "recording"])
    assert done.rc == 1 and b"in want_too_much" in done.stderr
    (device,) = only_bundle(tmp_path / "recording" / "oom_dumps")["live_memory"]["devices"]
    assert (device["live_bytes"], device["blocks"]) == (12 * MIB, 3)


def test_an_uncaught_error_in_a_thread_is_noticed(tmp_path):
    program = RUN_OUT + """
from gpumemprof.oom_flight_recorder import watch_uncaught_oom
watch_uncaught_oom(sys.argv[1])
limit()
thread = threading.Thread(target=want_too_much, name="loader")
thread.start(); thread.join()
"""
    done = nested.execute([PYTHON, "-c", program, tmp_path]).ok()
    assert b"Exception in thread loader" in done.stderr
    assert only_bundle(tmp_path)["metadata"]["context"] == "uncaught in thread loader"


def test_an_armed_tracker_needs_no_context_manager(tmp_path):
    program = RUN_OUT + """
from gpumemprof import MemoryTracker
tracker = MemoryTracker(device="cpu", sampling_interval=0.05, enable_oom_flight_recorder=True, oom_dump_dir=sys.argv[1])
tracker.start_tracking()
limit()
want_too_much()
"""
    assert nested.execute([PYTHON, "-c", program, tmp_path]).rc == 1
    bundle = only_bundle(tmp_path)
    assert bundle["events"][0]["event_type"] == "start"
    assert bundle["metadata"]["custom_metadata"]["collector_capabilities"]["backend"] == "cpu"


def test_a_pth_line_arms_recorded_programs_and_costs_the_others_nothing(tmp_path):
    (tmp_path / "arm.pth").write_text(
        'import os; os.environ.get("GPUMEMPROF_DIR") and __import__("_gpumemprof_recorded")\n'
    )
    program = tmp_path / "program.py"
    program.write_text(f"""
import site, sys
site.addsitedir({str(tmp_path)!r})
print(sorted(name for name in sys.modules if name.startswith(("gpumemprof.", "_gpumemprof_recorded"))))
""" + RUN_OUT + "limit()\nwant_too_much()\n")
    alone = execute([PYTHON, program], cwd=tmp_path)
    assert alone.rc == 1 and alone.stdout == b"[]\n" and b"gpumemprof" not in alone.stderr
    done = record(tmp_path / "recording", [PYTHON, program], ["--quiet"])
    assert done.rc == 1
    assert only_bundle(tmp_path / "recording" / "oom_dumps")["live_memory"]["devices"][0]["live_bytes"] == 12 * MIB


PROCESSES = RUN_OUT + """
import site
site.addsitedir(os.path.dirname(os.path.abspath(sys.argv[0])))
class Worker:
    def __call__(self):
        mine = hold()
        limit()
        want_too_much()
def fine():
    pass
def leaves():
    try:
        Worker()()
    except RuntimeError:
        sys.exit(1)
if __name__ == "__main__":
    import multiprocessing
    process = multiprocessing.get_context(sys.argv[1]).Process(target={target}, name="loader")
    {start}
    process.join()
    print(process.exitcode)
"""


def run_processes(tmp_path, target, method, start="process.start()"):
    (tmp_path / "arm.pth").write_text(
        'import os; os.environ.get("GPUMEMPROF_DIR") and __import__("_gpumemprof_recorded")\n'
    )
    program = tmp_path / "program.py"
    program.write_text(PROCESSES.format(target=target, start=start))
    return nested.record(tmp_path / "recording", [PYTHON, program, method], ["--quiet"]).ok()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_of_multiprocessing_that_runs_out_leaves_a_bundle(tmp_path, method):
    done = run_processes(tmp_path, "Worker()", method)
    assert done.printed() == [1] and b"Process loader:" in done.stderr
    # The traceback has the lines that it has without us.
    files = [line.split(b'"')[1] for line in done.stderr.splitlines() if line.startswith(b'  File "')]
    assert [os.path.basename(name) for name in files] == [b"process.py"] * 2 + [b"program.py"] * 2
    bundle = only_bundle(tmp_path / "recording" / "oom_dumps")
    assert bundle["metadata"]["context"] == "uncaught in process loader"
    assert bundle["metadata"]["exception_type"] == "RuntimeError"
    assert "8589934592" in bundle["metadata"]["exception_message"]
    # 12 MiB of the function's, and as much of the module's, unless that was allocated before the fork, in the parent.
    (device,) = bundle["live_memory"]["devices"]
    assert device["live_bytes"] == (12 if method == "fork" else 24) * MIB


def test_a_process_that_ends_with_an_error_after_running_out_leaves_a_bundle(tmp_path):
    assert run_processes(tmp_path, "leaves", "fork").printed() == [1]
    assert only_bundle(tmp_path / "recording" / "oom_dumps")["metadata"]["context"] == "ended process loader"


def test_a_process_started_where_an_error_is_handled_leaves_no_bundle_of_that(tmp_path):
    start = "try: raise MemoryError\n    except MemoryError: process.start()"
    done = run_processes(tmp_path, "fine", "fork", start)
    assert done.printed() == [0] and not (tmp_path / "recording" / "oom_dumps").exists()


def test_arming_imports_nothing_of_multiprocessing(tmp_path):
    program = """
import sys
from gpumemprof.oom_flight_recorder import watch_uncaught_oom
watch_uncaught_oom(sys.argv[1])
print(*("true" if name in sys.modules else "false" for name in ["multiprocessing"]))
"""
    assert execute([sys.executable, "-c", program, tmp_path]).ok().printed() == [False]


def test_other_exceptions_and_hooks_of_others_are_left_alone(tmp_path):
    program = """
import sys, json
said = []
sys.excepthook = lambda *a: (said.append(a[0].__name__), print(json.dumps(said)))
from gpumemprof.oom_flight_recorder import watch_uncaught_oom
recorder = watch_uncaught_oom(sys.argv[1])
{}
raise {}
"""
    plain = execute([sys.executable, "-c", program.format("", "KeyError(1)"), tmp_path])
    assert (plain.rc, plain.printed()) == (1, [["KeyError"]]) and bundles(tmp_path) == []
    oom = execute([sys.executable, "-c", program.format("", "MemoryError(1)"), tmp_path])
    assert (oom.rc, oom.printed()) == (1, [["MemoryError"]]) and len(bundles(tmp_path)) == 1
    off = execute([sys.executable, "-c", program.format("recorder.unwatch()", "MemoryError(1)"), tmp_path])
    assert (off.rc, off.printed()) == (1, [["MemoryError"]]) and len(bundles(tmp_path)) == 1


def test_hooks_are_put_back_where_nobody_watches_any_more(tmp_path):
    before = sys.excepthook
    subject = recorder(tmp_path)
    subject.watch_uncaught()
    assert sys.excepthook is not before
    subject.unwatch()
    assert sys.excepthook is before


def test_a_damaged_bundle_is_said_in_one_line(tmp_path):
    (tmp_path / "events.json").write_text("[1,")
    with pytest.raises(ValueError, match="events.json: "):
        read_bundle(tmp_path)
    assert json.loads("[]") == []


@pytest.mark.parametrize("option", ["buffer_size", "max_dumps", "max_total_mb"])
def test_limits_below_one_are_errors(option):
    with pytest.raises(ValueError, match=f"{option} must be >= 1"):
        OOMFlightRecorderConfig(**{option: 0})


def test_a_recorded_process_without_a_framework_imports_next_to_nothing(tmp_path):
    code = "import sys; print(*('_gpumemprof_recorded' + name in sys.modules for name in ('', '._recorded.standing')))"
    expected = {"": b"True False\n", "import keras; ": b"True True\n"}
    for before, printed in expected.items():
        if before and not importlib.util.find_spec("keras"):
            continue
        assert record(tmp_path / f"recording{len(before)}", [PYTHON, "-c", before + code]).ok().stdout == printed


def test_the_limit_of_a_process_is_told_to_the_byte():
    from gpumemprof._oom.bundle import limit_of

    draw = random.Random(5)
    for total in (25_430_786_048, 150_109_945_856, 85_045_280_768):
        for share in [8736 * 2**20 / total, *(draw.random() for _ in range(500))]:
            kept = int(share * total)  # what PyTorch's allocator keeps, and tells as a share
            assert limit_of(kept / total, total)["limit_bytes"] == kept
        assert limit_of(1.0, total)["limit_bytes"] is None  # none was set
        assert limit_of(None, total) == {"limit_bytes": None, "fraction": None, "total_bytes": total}
