"""Bytes a recorded event takes on the disk, whole folder, sealed and not."""
import contextlib
import os
import subprocess

import launch
from rows import Row


def folder_size(path):
    """(size, allocated) in bytes of a file or of all files in a folder. A sealed file may have
    holes where its source was, so the two differ; the disk has to hold the second."""
    size = allocated = 0
    if os.path.isfile(path):
        stat = os.lstat(path)
        return stat.st_size, stat.st_blocks * 512
    for directory, _, names in os.walk(path):
        for name in names:
            stat = os.lstat(os.path.join(directory, name))
            size += stat.st_size
            allocated += stat.st_blocks * 512
    return size, allocated


def record(path, threads, steps, options=()):
    out = launch.run_json(launch.recorded(
        launch.program("training.py", "--threads", threads, "--steps", steps), path, options=options))
    return out["events"]


def record_unsealed(path, steps):
    """The program kills the recording parent first, so nobody seals. Its end is that of stdout."""
    command = launch.recorded(launch.program("training.py", "--steps", steps, "--orphan"), path)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out = child.stdout.read()
    child.wait()
    return launch.last_json(out)["events"]


@contextlib.contextmanager
def memray_recording(steps):
    """A memray file of the same program, and how many allocations and frees it holds."""
    with launch.folder() as path:
        file = os.path.join(path, "memray.bin")
        launch.run([launch.PYTHON, "-m", "memray", "run", "-q", "-o", file,
                    *launch.program("training.py", "--steps", steps)[1:]])
        import memray

        yield file, memray.FileReader(file).metadata.total_allocations


def text(sizes, events):
    size, allocated = sizes
    return f"{allocated / events:.2f} B on disk ({size / events:.2f} B by file size)"


def row(what, sizes, events, bound, peers=()):
    return Row(f"{what} ({events:,} events)", text(sizes, events), f"≤ {bound} B",
               sizes[1] / events <= bound, list(peers),
               raw={"events": events, "size_bytes": sizes[0], "allocated_bytes": sizes[1]})


def memray_text(steps):
    """memray's own file. It records other events: every malloc and free, without a time of each."""
    with memray_recording(steps) as (file, records):
        return f"memray {folder_size(file)[1] / records:.2f} B of each of its {records:,} records"


def peer_texts(steps):
    try:
        return [memray_text(steps)]
    except (launch.Failed, ImportError) as failure:
        return [f"memray not measured: {failure}"]


def measure_sealed(threads, steps, has_peers):
    """The bound is for times, addresses and stacks; what modules and saved tensors take is said apart."""
    what = f"disk per event, sealed, transformer, {threads} thread{'s' if threads > 1 else ''}"
    with launch.folder() as path:
        alone = os.path.join(path, "alone")
        events = record(alone, threads, steps, ["--no-attribution"])
        rows = [row(what, folder_size(alone), events, 3.5, peer_texts(steps) if has_peers else [])]
        whole = os.path.join(path, "whole")
        events = record(whole, threads, steps)
        return [*rows, Row(f"{what}, with attribution ({events:,} events and marks)",
                           text(folder_size(whole), events), section="more")]


def measure_unsealed(steps):
    with launch.folder() as path:
        recording = os.path.join(path, "recording")
        events = record_unsealed(recording, steps)
        rows = [row("disk per event, unsealed (the recording parent killed), 1 thread",
                    folder_size(recording), events, 32)]
        launch.run([launch.gpumemprof(), "seal", recording])
        rows.append(Row("disk per event, that folder after `gpumemprof seal`, 1 thread",
                        text(folder_size(recording), events), section="more"))
        return rows


def parts(size):
    steps = size["disk_steps"]
    return [
        lambda: measure_sealed(1, steps, has_peers=True),
        lambda: measure_sealed(8, max(1, steps // 8), has_peers=False),
        lambda: measure_unsealed(steps),
    ]
