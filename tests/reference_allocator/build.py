"""Builds the reference allocator of one PyTorch release: its own library over a CUDA runtime without a device.

    python build.py 2.13.0 FOLDER        ->  FOLDER/2.13.0/reference
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import fetch

HERE = Path(__file__).resolve().parent


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def cuda_headers() -> Path:
    """The folder of cuda_runtime_api.h; any CUDA 12 or 13 does, as only names are used."""
    for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda", "/usr"):
        if home and (Path(home) / "include" / "cuda_runtime_api.h").exists():
            return Path(home) / "include"
    raise SystemExit("no CUDA headers here: set CUDA_HOME (Debian: nvidia-cuda-dev; pip: nvidia-cuda-runtime)")


def names_wanted(library: Path) -> set[str]:
    """What the library imports from CUDA, and what it looks up by name."""
    symbols = output("nm", "-D", "--undefined-only", str(library)).splitlines()
    undefined = {line.split()[-1].split("@")[0] for line in symbols}
    text = output("strings", "-n", "6", str(library))
    looked_up = set(re.findall(r"^(?:cu[A-Z]|nvml[A-Z])\w+$", text, re.MULTILINE))
    return {name for name in undefined if re.match(r"cuda?[A-Z]", name)} | looked_up


def build_fake(folder: Path, library: Path) -> str:
    """Compiles the fake runtime into `folder`; the file's name. What it lacks answers "not supported"."""
    needed = output("readelf", "-d", str(library))
    match = re.search(r"libcudart\.so\.(\d+)", needed)
    if match is None:
        raise SystemExit(f"{library} needs no libcudart: not a CUDA build")
    name = match.group(0)
    compiled = ["gcc", "-O2", "-fPIC", "-w", "-c", str(HERE / "fake_cuda.c"), "-o", str(folder / "fake.o")]
    subprocess.run(compiled, check=True)
    there = {line.split()[-1] for line in output("nm", "--defined-only", str(folder / "fake.o")).splitlines()}
    stubs = "".join(f"int {n}(void) {{ return 801; }}\n" for n in sorted(names_wanted(library) - there))
    (folder / "stubs.c").write_text(stubs)
    (folder / "versions").write_text(f"{name} {{ global: *; }};\n")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-w", str(folder / "fake.o"), str(folder / "stubs.c"), "-o", str(folder / name)]
        + [f"-Wl,-soname,{name}", f"-Wl,--version-script={folder / 'versions'}", "-ldl"],
        check=True,
    )
    for other in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (folder / other).unlink(missing_ok=True)
        (folder / other).symlink_to(name)
    return name


def string_abi(library: Path) -> int:
    """0 for wheels whose std::string is the one from before C++11."""
    symbols = output("nm", "-D", "--defined-only", str(library))
    return int("_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic" in symbols)


def build(version: str, root: Path, source: str = "reference.cc") -> Path:
    """The program of `source`; fetched and built where it is not there yet."""
    folder = root / version
    program = folder / source.removesuffix(".cc")
    newest = max((HERE / name).stat().st_mtime for name in (source, "fake_cuda.c", "build.py"))
    if program.exists() and program.stat().st_mtime > newest:
        return program
    libraries = folder / "torch" / "lib"
    if not (libraries / "libc10_cuda.so").exists():
        fetch.fetch(version, folder)
    name = build_fake(folder, libraries / "libc10_cuda.so")
    command = ["g++", "-O2", "-std=c++20", "-w", f"-DTORCH_MINOR={version.split('.')[1]}"]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={string_abi(libraries / 'libc10.so')}"]
    command += [f"-I{folder / 'torch' / 'include'}", f"-I{cuda_headers()}", str(HERE / source)]
    command += ["-o", str(program)]
    command += [f"-L{libraries}", f"-L{folder}", "-Wl,--no-as-needed", "-lc10_cuda", "-lc10", f"-l:{name}"]
    command += ["-Wl,--disable-new-dtags,-rpath,$ORIGIN:$ORIGIN/torch/lib", "-Wl,--allow-shlib-undefined"]
    subprocess.run(command, check=True)
    return program


if __name__ == "__main__":
    print(build(sys.argv[1], Path(sys.argv[2])))
