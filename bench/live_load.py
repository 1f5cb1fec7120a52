"""Many recorded programs at once, and what `top` and `serve` say of them meanwhile.

  bench/live_load.py                     64 writers × 100,000 events a second for a minute
  bench/live_load.py --writers 8 --rate 20000 --seconds 3 --json

The writers are programs of their own (programs/load_writer.cc) that call the allocator of a libc10 that stands in for
PyTorch's, so that their memory is that of the recorder alone; probe, files and sealing are the real ones. Each says how
many events it made. They are compared with what `serve` and `top` tell while the writers still live, and with what
`analyze` reads afterwards.
"""
import argparse
import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from terminal_view import TerminalView

ROOT = Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv" / "bin" / "gpumemprof"))
# Each writer in the background, with the input of the whole: it ends when that ends.
SHELL = 'exec 3<&0; i=0; while [ $i -lt "$1" ]; do "$2" "$3" "$4" <&3 & i=$((i+1)); done; wait'


def compiled(folder):
    """The writer, linked to a libc10 of the tests."""
    library, writer = folder / "libc10.so", folder / "load_writer"
    fake, source = ROOT / "tests" / "probe" / "fake_c10.cc", ROOT / "bench" / "programs" / "load_writer.cc"
    subprocess.run(["g++", "-O2", "-fPIC", "-shared", fake, "-o", library], check=True)
    subprocess.run(["g++", "-O2", source, "-o", writer, f"-L{folder}", "-lc10", f"-Wl,-rpath,{folder}"], check=True)
    return writer


@contextlib.contextmanager
def serving(folder):
    argv = [COMMAND, "serve", "--listen", "127.0.0.1:0", str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, int(re.search(r":(\d+)/", process.stdout.readline())[1])
        finally:
            process.send_signal(signal.SIGTERM)


def metrics(port):
    """{(family, pid): value} of the recordings."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.findall(r'^gpumemprof_(recording_\w+)\{pid="(\d+)"[^}]*\} (\S+)$', text, re.MULTILINE)
    return {(name, int(pid)): int(float(value)) for name, pid, value in found}


def once():
    """{pid: (events, lost)} of `top --once`."""
    done = subprocess.run([COMMAND, "top", "--once", "--format", "json"], stdout=subprocess.PIPE, check=True)
    return {one["pid"]: (one["events"], one["lost_events"]) for one in json.loads(done.stdout)["recordings"]}


def timed(times, call, *arguments):
    begin = time.monotonic()
    answer = call(*arguments)
    times.append(time.monotonic() - begin)
    return answer


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def press_keys(view, times):
    """Two keys of a `top` that runs all the while: to its help and back."""
    timed(times, view.press, b"?", b"the programs do no extra work")
    timed(times, view.press, b"1", b"PROGRAM")


def wait_for_all(port, written):
    """What `serve` tells of the writers once they stand still; after long looks it answers from memory for a while."""
    end = time.monotonic() + 120
    while True:
        told = metrics(port)
        live = {pid: tuple(told.get((name, pid), 0) for name in ("recording_events_total", "recording_lost_events"))
                for pid in written}
        if time.monotonic() > end or all(sum(live[pid]) >= events for pid, events in written.items()):
            return live
        time.sleep(0.5)


def load(writers, rate, seconds, work):
    folder, lines, times = work / "recording", [], {"serve": [], "top": [], "top_key": []}
    argv = ["sh", "-c", SHELL, "sh", str(writers), str(compiled(work)), str(rate), str(seconds)]
    argv = [COMMAND, "run", "-q", "-o", str(folder), "--", *argv]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        reader = threading.Thread(target=lambda: lines.extend(map(json.loads, itertools.islice(run.stdout, writers))))
        reader.start()
        while not list(folder.glob("*.gmp")) and run.poll() is None:
            time.sleep(0.05)
        with serving(folder) as (serve, port), TerminalView(COMMAND, "top", str(folder)) as view:
            view.until(b"PROGRAM")
            begin = time.monotonic()
            while reader.is_alive() and run.poll() is None:
                timed(times["serve"], metrics, port)
                timed(times["top"], once)
                press_keys(view, times["top_key"])
                reader.join(1)
            reader.join()
            if len(lines) != writers:
                raise SystemExit(f"{len(lines)} of {writers} writers told how many events they made")
            serve_share = cpu_seconds(serve.pid) / (time.monotonic() - begin)
            written = {line["pid"]: line["allocs"] + line["frees"] for line in lines}
            live = wait_for_all(port, written)
            top = {pid: one for pid, one in once().items() if pid in written}
        run.stdin.close()
        run.wait()
    done = subprocess.run([COMMAND, "analyze", "--format", "json", str(folder)], stdout=subprocess.PIPE, check=True)
    said = json.loads(done.stdout)
    read = {one["pid"]: one["events"] for one in said["processes"]}
    total = sum(written.values())
    return {
        "writers": writers, "rate": rate, "written": total, "exit_code": run.returncode,
        "slowest_writer_seconds": max(line["seconds"] for line in lines),
        "live": {"events": sum(e for e, _ in live.values()), "lost": sum(n for _, n in live.values()),
                 "exact": all(sum(live[pid]) == events for pid, events in written.items())},
        "top": {"events": sum(e for e, _ in top.values()), "lost": sum(n for _, n in top.values()),
                "exact": all(sum(top.get(pid, (0, 0))) == events for pid, events in written.items())},
        "read": {"events": sum(read.values()), "lost": said["lost"]["events"],
                 "exact": sum(read.values()) + said["lost"]["events"] == total
                 and all(read.get(pid, 0) <= events for pid, events in written.items())},
        "answers": {name: {"count": len(all_), "median_s": statistics.median(all_), "longest_s": max(all_)}
                    for name, all_ in times.items()},
        "serve_share_of_a_core": serve_share,
        "bytes_on_disk": sum(file.stat().st_blocks * 512 for file in folder.iterdir()),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--rate", type=int, default=100_000, help="events a second, of each")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="live-load-"))
    try:
        result = load(arguments.writers, arguments.rate, arguments.seconds, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    is_exact = all(result[where]["exact"] for where in ("live", "top", "read"))
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{result['writers']} writers, {result['written']:,} events, asked for {result['rate']:,} a second each; "
              f"the slowest took {result['slowest_writer_seconds']:.1f} s")
        for where in ("live", "top", "read"):
            one = result[where]
            whole = "all" if one["exact"] else "NOT ALL"
            print(f"{where:>10}: {one['events']:,} events and {one['lost']:,} counted as lost: {whole}")
        for name, one in result["answers"].items():
            print(f"{name:>10}: {one['count']} answers, median {one['median_s']:.3f} s, "
                  f"longest {one['longest_s']:.3f} s")
        print(f"serve took {result['serve_share_of_a_core']:.1%} of a core; "
              f"{result['bytes_on_disk'] / result['written']:.2f} bytes an event")
    sys.exit(0 if is_exact else 1)


if __name__ == "__main__":
    main()
