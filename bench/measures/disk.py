"""Bytes a recorded event takes on the disk, whole folder, sealed and not."""
import os
import subprocess

import launch
from rows import Row


def folder_size(path):
    """(size, allocated) of all files in a folder, bytes. A sealed file has holes where its source was,
    so the two differ; the disk has to hold the second."""
    size = allocated = 0
    for directory, _, names in os.walk(path):
        for name in names:
            stat = os.lstat(os.path.join(directory, name))
            size += stat.st_size
            allocated += stat.st_blocks * 512
    return size, allocated


def record(path, threads, steps):
    out = launch.run_json(launch.recorded(
        launch.program("training.py", "--threads", threads, "--steps", steps), path))
    return out["events"]


def record_unsealed(path, steps):
    """The program kills the recording parent first, so nobody seals; its end is the end of stdout."""
    command = launch.recorded(launch.program("training.py", "--steps", steps, "--orphan"), path)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out = child.stdout.read()
    child.wait()
    return launch.last_json(out)["events"]


def text(sizes, events):
    size, allocated = sizes
    return f"{allocated / events:.2f} B on disk ({size / events:.2f} B by file size)"


def row(what, sizes, events, bound, peers=()):
    return Row(f"{what} ({events:,} events)", text(sizes, events), f"≤ {bound} B",
               sizes[1] / events <= bound, list(peers),
               raw={"events": events, "size_bytes": sizes[0], "allocated_bytes": sizes[1]})


def memray_text(steps):
    """memray's own file. Its events are other ones: every malloc, and no times or addresses of frees."""
    with launch.folder() as path:
        file = os.path.join(path, "memray.bin")
        launch.run([launch.PYTHON, "-m", "memray", "run", "-q", "-o", file,
                    *launch.program("training.py", "--steps", steps)[1:]])
        import memray

        records = memray.FileReader(file).metadata.total_allocations
        return f"memray {folder_size(path)[1] / records:.2f} B of each of its {records:,} records"


def measure(size):
    steps = size["disk_steps"]
    rows = []
    with launch.folder() as path:
        one = os.path.join(path, "one")
        events = record(one, 1, steps)
        rows.append(row("disk per event, sealed, transformer, 1 thread", folder_size(one), events,
                        3.5, [memray_text(steps)]))
        eight = os.path.join(path, "eight")
        events = record(eight, 8, max(1, steps // 8))
        rows.append(row("disk per event, sealed, transformer, 8 threads", folder_size(eight),
                        events, 3.5))
        orphan = os.path.join(path, "orphan")
        events = record_unsealed(orphan, steps)
        rows.append(row("disk per event, unsealed (the recording parent killed), 1 thread",
                        folder_size(orphan), events, 32))
        launch.run([launch.gpumemprof(), "seal", orphan])
        rows.append(Row("the same folder after `gpumemprof seal`",
                        text(folder_size(orphan), events), section="more"))
    return rows
