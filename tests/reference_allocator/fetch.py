"""Fetches PyTorch's allocator, and nothing else, out of a CUDA wheel: two libraries and their headers.

    python fetch.py 2.13.0 FOLDER

The wheel has half a gigabyte or more; what is needed of it three megabytes. pip finds the wheel (whatever index
it is set up with) and reads single members of it over HTTP ranges; where the index does not honour ranges there
is one line that says so.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

LIBRARIES = ("torch/lib/libc10.so", "torch/lib/libc10_cuda.so", "torch/version.py")
HEADERS = ("torch/include/c10/", "torch/include/torch/headeronly/")
# Members closer than this are cheaper to fetch in one request than in two.
GAP_BYTES = 1 << 18
HEADER_SLACK_BYTES = 600  # a member's local header: 30 bytes, its name, extra fields


def wheel_url(version: str) -> str:
    """Where pip would download torch==VERSION from; a CPU build in a local folder of wheels is passed over."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("PIP_") or k in ("PIP_INDEX_URL", "PIP_CERT")}
    for environment in (dict(os.environ), plain | {"PIP_CONFIG_FILE": os.devnull}):
        url = resolve(version, environment)
        if url.startswith("http"):
            return url
    raise SystemExit(f"torch=={version} would come from {url.split(':')[0]}:, which has no CUDA build")


def resolve(version: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed"]
    command += ["--disable-pip-version-check", "--report", "-", f"torch=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
        raise SystemExit(f"pip does not find torch=={version}: {lines[-1]}")
    return str(json.loads(done.stdout)["install"][0]["download_info"]["url"])


def needed(archive: ZipFile) -> list[str]:
    names = [n for n in archive.namelist() if n in LIBRARIES or n.startswith(HEADERS)]
    return sorted(names, key=lambda name: archive.getinfo(name).header_offset)


def runs(archive: ZipFile, names: list[str]) -> list[tuple[int, int]]:
    """Byte ranges that hold the members, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for name in names:
        info = archive.getinfo(name)
        begin = info.header_offset
        end = begin + HEADER_SLACK_BYTES + len(name) + info.compress_size
        if joined and begin - joined[-1][1] < GAP_BYTES:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def fetch(version: str, folder: Path) -> int:
    """The number of members written below `folder`; SystemExit with one line where that cannot be done."""
    from pip._internal.network.lazy_wheel import HTTPRangeRequestUnsupported, LazyZipOverHTTP
    from pip._internal.network.session import PipSession

    url = wheel_url(version)
    session = PipSession(retries=3)
    try:
        with LazyZipOverHTTP(url, session) as remote:
            archive = ZipFile(remote)
            names = needed(archive)
            if "torch/lib/libc10_cuda.so" not in names:
                raise SystemExit(f"torch=={version} of this index is no CUDA build")
            for begin, end in runs(archive, names):
                remote._download(begin, min(end, remote._length - 1))
            for name in names:
                archive.extract(name, folder)
            return len(names)
    except HTTPRangeRequestUnsupported:
        raise SystemExit("the package index does not answer ranges: the whole wheel would be needed") from None


if __name__ == "__main__":
    print(f"torch {sys.argv[1]}: {fetch(sys.argv[1], Path(sys.argv[2]))} files")
