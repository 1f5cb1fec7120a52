"""The machine and the versions that the figures hold for, and how quiet it was."""
import importlib.metadata
import os
import platform
import subprocess
import time

import launch


def cpu_model():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    return "unknown"


def memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def file_system(path):
    out = subprocess.run(["df", "--output=fstype", path], capture_output=True, text=True)
    return (out.stdout.split() or ["unknown"])[-1]


def distribution():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def package(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def gpumemprof_version():
    try:
        return launch.run([launch.gpumemprof(), "--version"]).strip()
    except launch.Failed:
        return "unknown"


def facts():
    os.makedirs(launch.WORK, exist_ok=True)
    return {
        "CPU": f"{cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{memory_gib():.0f} GiB",
        "system": f"{distribution()}, Linux {platform.release()} {platform.machine()}",
        "file system of the recordings": file_system(launch.WORK),
        "Python": platform.python_version(),
        "PyTorch": package("torch"),
        "memray": package("memray"),
        "gpumemprof": gpumemprof_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def cpu_times():
    with open("/proc/stat") as file:
        fields = [int(x) for x in file.readline().split()[1:]]
    return {"total": sum(fields[:8]), "idle": fields[3] + fields[4], "steal": fields[7]}


def share(before, after, name):
    total = after["total"] - before["total"]
    return (after[name] - before[name]) / total if total else 0.0


def busy_before(seconds=3):
    """Share of all CPUs that others used while we waited."""
    before = cpu_times()
    time.sleep(seconds)
    return 1 - share(before, cpu_times(), "idle")
