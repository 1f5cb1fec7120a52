"""The wheels of `make wheel`: what their programs and libraries ask of a system, and what they show to a process."""

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "build/wheel/dist").glob("*.whl"))
GLIBC = (2, 28)
# Of glibc alone: no C++ library, so none meets PyTorch's.
LIBC = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux-(x86-64\.so\.2|aarch64\.so\.1)")

pytestmark = pytest.mark.skipif(not WHEELS, reason="no wheel here: run `make wheel`")


def read(*argv):
    return subprocess.run([*map(str, argv)], capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=WHEELS, ids=lambda path: path.stem, scope="module")
def files(request, tmp_path_factory):
    """{name in the wheel: path} of its programs and libraries."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(request.param) as wheel:
        names = [name for name in wheel.namelist() if wheel.read(name)[:4] == b"\x7fELF"]
        wheel.extractall(folder, names)
    return {name: folder / name for name in names}


@pytest.mark.parametrize("path", WHEELS, ids=lambda path: path.stem)
def test_a_wheel_is_at_most_10_mb_and_needs_no_package(path):
    assert path.stat().st_size <= 10_000_000
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        needs = re.findall(r"^Requires-Dist: (.*)$", wheel.read(name).decode(), re.MULTILINE)
    assert [need for need in needs if "extra ==" not in need] == []


@pytest.mark.parametrize("path", WHEELS, ids=lambda path: path.stem)
def test_a_wheel_has_the_manual_and_what_shells_complete(path):
    names = zipfile.ZipFile(path).namelist()
    assert sum(".data/data/share/man/man1/" in name for name in names) == 2
    assert sum(bool(re.search(r"\.data/data/share/(bash|zsh|fish)", name)) for name in names) == 6


@pytest.mark.parametrize("path", WHEELS, ids=lambda path: path.stem)
def test_pytest_loads_the_plugin_of_a_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
        assert "[pytest11]\ngpumemprof = gpumemprof.pytest_plugin\n" in wheel.read(name).decode()


def test_it_has_the_modules_of_every_python_from_3_9_on(files):
    modules = {Path(name).name.split("-linux")[0] for name in files if name.startswith("gpumemprof/")}
    arch = "aarch64" if any("aarch64" in name for name in files) else "x86_64"
    marks = {f"_marks.cpython-3{minor}-{arch}" for minor in range(9, 15)}
    assert modules == marks | {"_native.abi3.so"}  # with the bindings of each


def test_a_function_that_a_python_lacks_does_not_keep_the_module_of_all_from_being_loaded(files):
    symbols = [line.split() for line in read("readelf", "--dyn-syms", "-W", files["gpumemprof/_native.abi3.so"]).splitlines()]
    of_python = [row for row in symbols if len(row) > 7 and re.match("_?Py", row[7]) and row[6] == "UND"]
    assert len(of_python) > 100
    assert {row[7] for row in of_python if row[4] != "WEAK"} == {"Py_GetVersion"}


def test_no_symbol_needs_a_newer_glibc(files):
    assert len(files) == 1 + 5 + 6 + 1  # the command, libraries of recorded programs, _marks of each Python, _native
    for name, path in files.items():
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", read("readelf", "-VW", path))}
        assert versions and max(versions) <= GLIBC, (name, max(versions))
        others = set(re.findall(r"Name: ((?!GLIBC)\w+_[\d.]+)", read("readelf", "-VW", path)))
        assert not others, (name, others)


def test_no_library_but_those_of_glibc_is_needed(files):
    for name, path in files.items():
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "-dW", path))
        assert [library for library in needed if not LIBC.fullmatch(library)] == [], name


def exported(path):
    symbols = read("readelf", "--dyn-syms", "-W", path).splitlines()
    rows = [line.split() for line in symbols]
    return {row[7].split("@")[0] for row in rows if len(row) > 7 and row[4] in ("GLOBAL", "WEAK") and row[6] != "UND"}


def test_modules_show_nothing_but_their_entry(files):
    for name, path in files.items():
        if name.startswith("gpumemprof/"):
            assert exported(path) == {"PyInit_" + Path(name).name.split(".")[0]}, name


def test_the_libraries_of_recorded_programs_show_what_those_of_make_show(files):
    for name, path in files.items():
        if "/lib/gpumemprof/" in name:
            assert exported(path) == exported(ROOT / ".venv/lib" / Path(name).name), name
