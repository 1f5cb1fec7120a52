"""Children that cannot make a file: without_a_file.py torch|light HOW FOLDER, FOLDER on the recording's disk.

Each of the CHILDREN makes BLOCKS blocks of BLOCK_BYTES and one of LAST_BYTES, frees none, and prints how many it has.
"""
import os
import resource
import signal
import sys
import time
from pathlib import Path

CHILDREN, BLOCKS, BLOCK_BYTES, LAST_BYTES = 3, 5, 50_000, 1_000_000


def fill(folder, size):
    """Until not even an empty file can be made, or nothing written."""
    for number in range(1_000_000):
        try:
            fd = os.open(folder / f"filler{number}", os.O_WRONLY | os.O_CREAT)
        except OSError:
            return
        try:
            while size and os.write(fd, b"x" * size):
                pass
        except OSError:
            return
        finally:
            os.close(fd)


def restrict(how, folder):
    if how == "user":
        os.setgid(65534)
        os.setuid(65534)
    elif how == "root":
        (folder / "jail").mkdir(exist_ok=True)
        os.chroot(folder / "jail")
        os.chdir("/")
    elif how == "file_size":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    elif how == "descriptors":
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def main():
    allocator, how, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if allocator == "torch":
        import torch

        def make(size):
            return torch.empty(size, dtype=torch.uint8)
    else:
        from light import Block as make
    kept = [] if how.endswith("_first") else [make(4_000)]
    if how.startswith(("space", "inodes")):
        fill(folder, 4096 if how.startswith("space") else 0)
    if how.endswith("_first"):
        kept += [make(BLOCK_BYTES) for _ in range(BLOCKS)]
        os.write(1, b"%d\n" % len(kept))
        os._exit(0)
    for _ in range(CHILDREN):
        pid = os.fork()
        if pid == 0:
            restrict(how, folder)
            own = [make(BLOCK_BYTES) for _ in range(BLOCKS)] + [make(LAST_BYTES)]  # the parent's block stays
            os.write(1, b"%d\n" % len(own))
            if os.environ.get("STAY"):
                time.sleep(600)
            os._exit(0)
        if not os.environ.get("STAY"):
            os.waitpid(pid, 0)
    if os.environ.get("STAY"):
        time.sleep(600)
    os._exit(0)


if __name__ == "__main__":
    main()
