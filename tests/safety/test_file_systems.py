"""On every file system: a disk that becomes full, a recording that is copied or cut while it grows. The program never
notices, and each of its events is in the recording or counted as lost."""
import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness

PROGRAM = harness.PROGRAMS / "on_a_disk.py"
_spec = importlib.util.spec_from_file_location("on_a_disk", PROGRAM)
on_a_disk = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(on_a_disk)
EVENTS = 2 * on_a_disk.ROUNDS * on_a_disk.PER_ROUND - on_a_disk.KEPT

MAY_LACK = "what happened last may be missing"
MIB = 1 << 20
# Sizes: the smallest that mkfs takes, or makes as larger ones.
IMAGES = {
    "ext4": (24, ["mkfs.ext4", "-q", "-F"]),
    "xfs": (320, ["mkfs.xfs", "-q", "-f", "-m", "reflink=1"]),
    "btrfs": (160, ["mkfs.btrfs", "-q", "-f"]),
    "btrfs-mixed": (64, ["mkfs.btrfs", "-q", "-f", "--mixed"]),
}
QUICK = ["ext4", "xfs", "btrfs-mixed"]
# As NFS is to a program: the server's disk becomes full; or the server goes away then.
NFS = {"nfs": [], "nfs-gone": ["broken"]}
NFS_BYTES = 8 * MIB


def command(argv):
    try:
        done = harness.execute(argv)
    except FileNotFoundError:
        pytest.skip(f"{argv[0]} is not installed")
    if done.rc:
        pytest.skip(f"not permitted here: {' '.join(map(str, argv))}: {done.stderr.decode()[-200:]}")


@contextlib.contextmanager
def mounted(where, argv, unmount=("umount", "-l")):
    where.mkdir(parents=True)
    command([*argv, where])
    try:
        yield where
    finally:
        subprocess.run([*unmount, where], check=True)


def nfs_like(folder):
    """The program of nfs_like.c, made once a test."""
    out = folder.parent / "nfs_like"
    if not out.exists():
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False)
        if flags.returncode != 0 or not os.path.exists("/dev/fuse"):
            pytest.skip("no /dev/fuse or no libfuse3-dev")
        source = Path(__file__).with_name("nfs_like.c")
        subprocess.run(["gcc", "-O1", "-o", out, source, *flags.stdout.split()], check=True)
    return out


@contextlib.contextmanager
def image(folder, name):
    size_mib, make = IMAGES[name]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.image"
    with open(file, "wb") as out:
        out.truncate(size_mib * MIB)
    command([*make, file])
    with mounted(folder / name, ["mount", "-o", "loop", file]) as mount:
        yield mount
    file.unlink()


@contextlib.contextmanager
def disk(folder, name):
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    if name in IMAGES:
        with image(folder, name) as mount:
            yield mount
    elif name == "tmpfs":
        with mounted(folder / name, ["mount", "-t", "tmpfs", "-o", "size=8m", "none"]) as mount:
            yield mount
    elif name == "overlay":
        with image(folder, "xfs") as below:
            for part in ("lower", "upper", "work"):
                (below / part).mkdir()
            options = f"lowerdir={below}/lower,upperdir={below}/upper,workdir={below}/work"
            with mounted(folder / name, ["mount", "-t", "overlay", "-o", options, "overlay"]) as mount:
                yield mount
    elif name in NFS:
        (folder / "server").mkdir(parents=True)
        argv = [nfs_like(folder), *NFS[name], folder / "server", NFS_BYTES]
        with mounted(folder / name, argv) as mount:
            yield mount
    else:  # another process answers for the files
        if not os.path.exists("/dev/fuse") or not shutil.which("bindfs"):
            pytest.skip("no /dev/fuse or no bindfs")
        with image(folder, "ext4") as below, mounted(folder / name, ["bindfs", below]) as mount:
            yield mount


def program(mode, folder, allocator="light"):
    return [harness.PYTHON, PROGRAM, allocator, mode, folder]


def run_on(folder, name, mode, env, allocator="light"):
    """Without and with the recorder, each on a file system of its own. The folder of the recording outlives the disk."""
    with disk(folder / "without", name) as mount:
        without = harness.execute(program(mode, mount, allocator), env=env, timeout=200)
    with disk(folder / "with", name) as mount:
        done = harness.record(mount / "recording", program(mode, mount, allocator), env=env, timeout=200)
        assert (done.rc, done.stdout) == (without.rc, without.stdout) == (0, b"alive\n"), (without, done)
        kept = folder / "kept"
        shutil.copytree(mount / "recording", kept)
        copies = sorted(Path(mount).glob("copy*"))
        for copy in copies:
            shutil.copytree(copy, folder / copy.name)
    return done, kept, [folder / copy.name for copy in copies]


def counted(recording):
    """Events in the recording, and those that it counts as lost."""
    analysis = harness.analysis(recording)
    lost = analysis["lost"]
    events = len(harness.events(recording, may_lack_some=True))
    for device in analysis["devices"]:
        assert device["peak"]["exact"] == (lost["events"] == 0 and not lost.get("more_than_counted")), lost
    return events, lost["events"]


def check(folder, name, mode, light, allocator="light"):
    done, recording, copies = run_on(folder, name, mode, light.env, allocator)
    events, lost = counted(recording)
    said = done.stderr.decode()
    # Where nothing at all can be written any more, not even a number over another, `run` says it, and the file that it lacks its end.
    unwritten = re.search(r"its last events could not be written: No space left on device: it lost (\d+) events", said)
    if unwritten:
        assert name.startswith("btrfs") and MAY_LACK in str(harness.analysis(recording)["lost"]["reasons"])
        lost += int(unwritten[1])
    if name == "nfs-gone" and mode.endswith("full"):  # the server took with it what would have told how many
        assert events + lost < EVENTS and "LOST: an unknown number of events: " in said and "; NOT EXACT" in said, said
        assert "Input/output error\n" in said and MAY_LACK in said, said
        return
    assert events + lost == EVENTS, (events, lost, said)
    assert ("Nothing was lost." not in said) == (lost > 0), said
    if mode == "copied":
        assert lost == 0 and len(copies) == on_a_disk.ROUNDS - 1
    if mode == "cut":
        assert lost > 0
    for copy in copies:  # of a moment: nothing that was not there, and it says that more may have come
        events, lost = counted(copy)
        assert events + lost <= EVENTS and harness.analysis(copy)["lost"]["reasons"]


@pytest.mark.parametrize("mode", ["full", "copied_and_full", "cut"])
@pytest.mark.parametrize("name", [*QUICK, "nfs"])
def test_the_program_never_notices(tmp_path, light, name, mode):
    check(tmp_path, name, mode, light)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["full", "copied", "copied_and_full", "cut"])
@pytest.mark.parametrize("name", [*IMAGES, *NFS, "tmpfs", "overlay", "fuse"])
def test_the_program_never_notices_on_any_file_system(tmp_path, light, name, mode):
    check(tmp_path, name, mode, light)


@pytest.mark.slow
@pytest.mark.parametrize("name, mode", [("xfs", "copied_and_full"), ("btrfs-mixed", "full")])
def test_a_program_with_pytorch_never_notices(tmp_path, light, name, mode):
    check(tmp_path, name, mode, light, "torch")
