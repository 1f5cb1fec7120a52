"""Allocates while things happen to the disk that the recording is on:
on_a_disk.py torch|light full|copied|copied_and_full|cut FOLDER

FOLDER is on that disk and holds the recording, where there is one, as `recording`. Each of the ROUNDS allocates PER_ROUND
blocks; all but the last KEPT are freed. The end frees nothing, so there are 2 * ROUNDS * PER_ROUND - KEPT events.
"""
import ctypes
import errno
import os
import subprocess
import sys
import time
from pathlib import Path

ROUNDS, PER_ROUND, KEPT = 6, 4_000, 50

if __name__ == "__main__":
    ALLOCATOR, MODE, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if ALLOCATOR == "torch":
        import torch

        def make(size):
            return torch.empty(size, dtype=torch.uint8)
    else:
        from light import Block as make

libc = ctypes.CDLL(None, use_errno=True)
kept = []
fillers = 0


def work():
    for i in range(PER_ROUND):
        kept.append(make(1_000 + i % 977))
        if len(kept) > KEPT:
            kept.pop(i % KEPT)


def write_back():
    """The kernel writes what is changed to the disk, so that the next store finds pages that are not writable any more."""
    fd = os.open(FOLDER, os.O_RDONLY)
    libc.syncfs(fd)
    os.close(fd)


def take(fd, size):
    """Space for a file: asked for, else written. C's own way writes a byte a page, which is slow where a process answers for it."""
    if libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(size)) != 0:
        if ctypes.get_errno() != errno.EOPNOTSUPP:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.pwrite(fd, bytes(size), 0)


def fill():
    """Until nothing can be written any more: large files first, without their content, then small ones with it."""
    global fillers
    for size in (1 << 25, 1 << 20, 1 << 16, 1 << 12):
        failures = 0
        while failures < 3:
            fillers += 1
            try:
                fd = os.open(FOLDER / f"filler{fillers}", os.O_WRONLY | os.O_CREAT)
                try:
                    take(fd, size)
                    os.pwrite(fd, os.urandom(min(size, 4096)), 0)
                finally:
                    os.close(fd)
            except OSError:
                failures += 1
    write_back()


def full():
    write_back()
    fill()


def copied():
    """A copy that shares blocks where the file system can do that: the next change of each needs a new one."""
    write_back()
    if (FOLDER / "recording").is_dir():
        subprocess.run(["cp", "-r", FOLDER / "recording", FOLDER / f"copy{len(list(FOLDER.glob('copy*')))}"], check=True,
                       env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
    write_back()


def cut():
    for file in (FOLDER / "recording").glob("*.gmp"):
        os.truncate(file, 0)


def main():
    for turn in range(ROUNDS):
        work()
        if MODE == "copied_and_full":
            copied() if turn == 1 else fill() if turn > 1 else None
        elif turn > 0:
            {"full": full, "copied": copied, "cut": cut}[MODE]()
        time.sleep(0.05)
    os.write(1, b"alive\n")
    os._exit(0)


if __name__ == "__main__":
    main()
