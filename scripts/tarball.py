#!/usr/bin/env python3
"""Packs the command without the Python package: tarball.py BUILD ARCH DIST

BUILD is the build folder of make, or one of scripts/wheel. The archive has one folder, which works wherever it is.
"""

import gzip
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from assemble_wheel import EXECUTABLE, LIBRARIES, PLAIN, ROOT, project_version, shell_files

README = """gpumemprof {version} for Linux on {arch} with glibc {glibc} or newer

Run bin/gpumemprof from where this folder is, or put bin/ into PATH; `gpumemprof --help` says what it can do.
The Python package, which also names modules and tensors in recordings, is in the wheel alone.
"""


def stripped(path):
    """Without the line tables, most of its size. The compiler of scripts/wheel leaves none."""
    data = path.read_bytes()
    if b".debug_line" not in data:
        return data
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run(["strip", "-o", copy.name, path], check=True)
        return Path(copy.name).read_bytes()


def newest_glibc(files):
    """The newest that any of them has a symbol of."""
    found = {(int(a), int(b)) for data in files for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", data)}
    return ".".join(map(str, max(found)))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    build, arch, dist = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    version = project_version()
    programs = {"bin/gpumemprof": stripped(build / "gpumemprof")}
    programs |= {f"lib/gpumemprof/{Path(library).name}": stripped(build / library) for library in LIBRARIES}
    files = {name: (data, EXECUTABLE) for name, data in programs.items()}
    files |= {f"share/{name}": (path.read_bytes(), PLAIN) for name, path in shell_files(build)}
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes(), PLAIN
    files["README"] = README.format(version=version, arch=arch, glibc=newest_glibc(programs.values())).encode(), PLAIN
    name = f"gpumemprof-{version}-linux-{arch}"
    dist.mkdir(parents=True, exist_ok=True)
    path = dist / f"{name}.tar.gz"
    # No time and no name of who packed it: the same bytes for the same build.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for file, (data, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo(f"{name}/bin/tfmemprof")
        link.type, link.linkname = tarfile.SYMTYPE, "gpumemprof"
        tar.addfile(link)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
