#!/usr/bin/env python3
"""Puts a build of scripts/wheel into a wheel: assemble_wheel.py BUILD ARCH PLATFORM DIST

BUILD has the command, the libraries and, in modules/, the modules of every Python. The metadata is that of
pyproject.toml and CMakeLists.txt.
"""

import base64
import hashlib
import re
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXECUTABLE, PLAIN = 0o755, 0o644
LIBRARIES = ("src/probe/libgpumemprof_probe.so", *(f"src/driver_proxy/libgpumemprof_{kind}.so" for kind in ("cuda", "hip", "level_zero")),
             "src/host_blocks/libgpumemprof_host.so")


def project_version():
    return re.search(r"project\(gpumemprof VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def shell_files(build):
    """The pages of the manual and what shells complete: a command for another machine could not write its own, and
    they are the same."""
    for folder in (build, ROOT / "build/wheel/x86_64/gpumemprof", ROOT / "build"):
        share = folder / "share"
        if (share / "man").is_dir():
            return sorted((path.relative_to(share), path) for path in share.rglob("*") if path.is_file())
    sys.exit("no manual here: run make first")


class Wheel:
    def __init__(self, path, info):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self._info, self._record = info, []

    def add(self, name, data, mode=PLAIN):
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes for the same build
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        self._record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self):
        name = f"{self._info}/RECORD"
        self.add(name, "".join([*self._record, f"{name},,\n"]).encode())
        self._zip.close()


def of_extra(need, extra):
    """A requirement of pyproject.toml, with its own condition, as one of an extra."""
    name, _, condition = (part.strip() for part in need.partition(";"))
    return f"{name} ; " + (f"({condition}) and " if condition else "") + f"extra == '{extra}'"


def metadata(project, version):
    lines = ["Metadata-Version: 2.3", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}"]
    lines += [f"Requires-Python: {project['requires-python']}", f"License: {project['license']}"]
    lines += [f"Classifier: {one}" for one in project["classifiers"]]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {of_extra(need, extra)}" for need in needs]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
    return "\n".join(lines).encode()


def entry_points(project):
    """Commands, and what pytest loads by itself."""
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
                     for group, names in groups.items()).encode()  # fmt: skip


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    build, arch, platform, dist = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = setup["project"]
    version = project_version()
    tag = f"py3-none-{platform}_{arch}"
    name = f"{project['name']}-{version}"
    dist.mkdir(parents=True, exist_ok=True)
    path = dist / f"{name}-{tag}.whl"
    info, data = f"{name}.dist-info", f"{name}.data"
    wheel = Wheel(path, info)
    for package in setup["tool"]["scikit-build"]["wheel"]["packages"]:
        folder = ROOT / package
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so":
                wheel.add(str(file.relative_to(folder.parent)), file.read_bytes())
    wheel.add("gpumemprof.pth", (ROOT / "python/gpumemprof.pth").read_bytes())
    for file in sorted((build / "modules").glob("*.so")):
        wheel.add(f"gpumemprof/{file.name}", file.read_bytes(), EXECUTABLE)
    wheel.add(f"{data}/scripts/gpumemprof", (build / "gpumemprof").read_bytes(), EXECUTABLE)
    for library in LIBRARIES:
        wheel.add(f"{data}/data/lib/gpumemprof/{Path(library).name}", (build / library).read_bytes(), EXECUTABLE)
    for name, path in shell_files(build):
        wheel.add(f"{data}/data/share/{name}", path.read_bytes())
    wheel.add(f"{info}/entry_points.txt", entry_points(project))
    wheel.add(f"{info}/METADATA", metadata(project, version))
    wheel.add(f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: scripts/wheel\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.close()
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
