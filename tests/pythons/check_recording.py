"""Checks recordings made under whatever Python runs this file. It needs that Python, its PyTorch, and the
gpumemprof command; no test runner, so that it works in a bare system root:

    python3 check_recording.py PATH/gpumemprof [NAME OF A CHECK TO LEAVE OUT…]

Every check runs programs/*.py beside this file under the recorder and compares what was recorded with what
the program itself said of its stacks and sizes.
"""

import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
MAX_FRAMES = 128


class Recording:
    """A program that was recorded: what it printed (JSON) and its events."""

    def __init__(self, command, program, *options):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "recording"
            run = [command, "run", "-o", folder, *options, "--", sys.executable, PROGRAMS / program]
            done = subprocess.run(run, capture_output=True, timeout=600, check=False)
            assert done.returncode == 0, f"{program}: exit {done.returncode}: {done.stderr.decode()[-2000:]}"
            self.printed = json.loads(done.stdout)
            export = subprocess.run(
                [command, "export", folder, "--to", "jsonl"], capture_output=True, check=True
            )
            self.events = [json.loads(line) for line in export.stdout.decode("utf-8").splitlines()]
            analysis = [command, "analyze", folder, "--format", "json"]
            self.analysis = json.loads(subprocess.run(analysis, capture_output=True, check=True).stdout)
        self.by_size = collections.defaultdict(list)
        for event in self.events:
            if event["action"] == "alloc":
                self.by_size[event["size_bytes"]].append(event)

    def only(self, size):
        """The one allocation of a size that the program used once."""
        found = self.by_size[size]
        assert len(found) == 1, f"{len(found)} allocations of {size} bytes"
        return found[0]


def frames(event):
    """(file, line, function) of a stack, the allocating line first; None where a line is no frame. Left out is what says
    under which module, node or mode of PyTorch the thread works."""
    result = []
    for text in event.get("stack", []):
        if text.startswith("<torch "):
            continue
        place, _, function = text.rpartition(" ")
        file, _, line = place.rpartition(":")
        result.append((file, int(line), function) if line.isdigit() else None)
    return result


def same_frame(recorded, said):
    """`said` is [file, line, name, qualified name]; a recording may use either name."""
    file, line, name, qualified = said
    return recorded is not None and recorded[:2] == (file, line) and recorded[2] in (name, qualified)


def compare_stack(event, said):
    """`said` as traceback.extract_stack has it, here with the allocating line first."""
    recorded = frames(event)
    assert len(recorded) == len(said), f"{len(said)} frames expected, recorded: {event.get('stack')}"
    for ours, theirs in zip(recorded, said):
        assert same_frame(ours, theirs), f"recorded {ours}, Python says {theirs}"


def check_generated_functions(command):
    """1,000 functions, each compiled, called once and dropped: each names its own file and line."""
    recording = Recording(command, "generated.py")
    wrong = 0
    for size, file, line in recording.printed:
        top = [frames(event)[0] for event in recording.by_size[size] if event.get("stack")]
        wrong += (file, line, "f") not in top
    assert wrong == 0, f"{wrong} of {len(recording.printed)} on a wrong line"


def check_whole_stacks(command):
    """Functions, methods, generators, coroutines, callbacks, threads, class bodies, exec: whole stacks."""
    recording = Recording(command, "stacks.py")
    assert len(recording.printed) >= 20
    for size, said in recording.printed.items():
        try:
            compare_stack(recording.only(int(size)), said)
        except AssertionError as error:
            raise AssertionError(f"size {size}: {error}") from None


def check_names(command):
    """Names and file names outside of ASCII, of every width that Python stores text in."""
    recording = Recording(command, "names.py")
    for size, file, function in recording.printed:
        top = frames(recording.only(size))[0]
        assert top is not None and top[0] == file and top[2].split(".")[-1] == function, (top, file, function)


def check_depths(command):
    """Stacks up to the limit are whole; deeper ones keep both ends and say what is left out."""
    recording = Recording(command, "deep.py")
    for depth, (size, said) in recording.printed.items():
        event = recording.only(size)
        if len(said) <= MAX_FRAMES:
            compare_stack(event, said)
            continue
        recorded = frames(event)
        assert len(recorded) <= MAX_FRAMES + 1, f"depth {depth}: {len(recorded)} lines"
        assert same_frame(recorded[0], said[0]), (recorded[0], said[0])
        assert same_frame(recorded[-1], said[-1]), (recorded[-1], said[-1])
        left_out = [text for text, frame in zip(event["stack"], recorded) if frame is None]
        kept = len(recorded) - len(left_out)
        assert len(left_out) == 1, f"depth {depth}: nothing says that frames are left out"
        assert str(len(said) - kept) in left_out[0], (left_out, len(said), kept)


def check_sizes_and_peak(command):
    """Known tensors: every size and line, and the peak as plain arithmetic over the events gives it."""
    recording = Recording(command, "sizes.py")
    for size, file, line in recording.printed["tensors"]:
        assert frames(recording.only(size))[0][:2] == (file, line), size
    held = sum(recording.printed["held_at_peak"])
    live, now, peak = {}, 0, 0
    for event in recording.events:
        if event["device"] != "cpu":
            continue
        if event["action"] == "alloc":
            live[event["address"]] = event["size_bytes"]
            now += event["size_bytes"]
        else:
            now -= live.pop(event["address"], 0)
        peak = max(peak, now)
    device = next(d for d in recording.analysis["devices"] if d["device"] == "cpu")
    assert device["peak"]["requested_bytes"] == peak, (device["peak"], peak)
    holders = sum(h["bytes"] for h in device["holders_at_peak"] if "sizes.py" in str(h["stack"]))
    assert holders == held, (holders, held)


def check_children(command):
    """Children by fork that leave with os._exit, and by exec: each has its own process, nothing is lost."""
    recording = Recording(command, "children.py")
    sizes = recording.printed["sizes"]
    processes = {size: str(recording.only(size)["process"]) for size in sizes}
    assert len(set(processes.values())) == len(sizes), processes
    assert recording.analysis["lost"]["events"] == 0, recording.analysis["lost"]


def check_arenas(command):
    """Bytes of Python's arenas: as the interpreter prints them, with the one stack of frames that its only thread has from
    3.11 on (DATA_STACK_CHUNK_SIZE in CPython's pystate.c); unknown with a reason where there are none."""
    printed = Recording(command, "arenas.py").printed
    first, full, _last = printed["looks"]
    if first[2] is None:
        assert all(counted == -1 and "mimalloc" in why for counted, why, _said in printed["looks"]), printed
        return
    frames_bytes = 16 << 10 if sys.version_info >= (3, 11) else 0
    for counted, why, said in printed["looks"]:
        assert (counted, why) == (said + frames_bytes, ""), printed
    assert full[0] - first[0] >= 300_000 * 64, printed
    counted, _why, said = printed["child"]
    assert counted == said + frames_bytes, "a forked child has something else than it counts"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    import torch

    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}", flush=True)
    left_out = {f"check_{name}" for name in sys.argv[2:]}
    checks = [value for name, value in globals().items() if name.startswith("check_") and name not in left_out]
    failed = 0
    for check in checks:
        name = check.__name__.removeprefix("check_")
        try:
            check(sys.argv[1])
            print(f"ok      {name}", flush=True)
        except (AssertionError, KeyError, IndexError, subprocess.SubprocessError, ValueError) as error:
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
