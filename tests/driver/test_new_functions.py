"""Drivers that export functions which are not on the stand-in's list: they are forwarded as those on it."""

import struct
import subprocess
import sys

import harness
import pytest
from fake_machine import FAKES, HERE, Recorded

MIB = 1 << 20
DIGITS = b"1234567887654321 2\n"  # the arguments from the last to the first, and the other function's answer
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_GNU_HASH = 4, 5, 6, 0x6FFFFEF5


@pytest.fixture
def newest(machine):
    """The environment of a machine whose driver has two functions more."""
    env = machine()
    return {**env, "LD_LIBRARY_PATH": env["LD_LIBRARY_PATH"].replace(str(FAKES / "cuda"), str(FAKES / "cuda_next"))}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """`linked` to the driver and bound at once, `looks_up`, and `opens`, which has a library that is linked."""
    folder = tmp_path_factory.mktemp("programs")
    if not (FAKES / "cuda_next").is_dir():
        pytest.skip(f"no fakes in {FAKES}: `make test` builds them")
    driver = [f"-L{FAKES / 'cuda_next'}", "-l:libcuda.so.1", "-Wl,-z,now"]

    def compile(name, *options):
        subprocess.run(["gcc", "-O1", "-o", folder / name, HERE / "new_caller.c", *options], check=True)

    compile("linked", "-DPROGRAM", *driver)
    compile("looks_up", "-DPROGRAM", "-DLOOK_UP")
    compile("library.so", "-shared", "-fPIC", *driver)
    return {"linked": [folder / "linked"], "looks_up": [folder / "looks_up"], "opens": [folder / "looks_up", folder / "library.so"]}


def run(folder, command, env):
    return harness.execute([harness.COMMAND, "run", "-o", str(folder), "--", *map(str, command)], env=env)


@pytest.mark.parametrize("kind", ["linked", "looks_up", "opens"])
def test_a_program_that_uses_them_runs_as_without_us_and_is_recorded(newest, programs, tmp_path, kind):
    plain = subprocess.run(programs[kind], env=newest, capture_output=True)
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, DIGITS * 2, b"")
    done = run(tmp_path / "recording", programs[kind], newest).ok()
    assert done.stdout == plain.stdout and "not recorded" not in done.stderr.decode()
    (device,) = Recorded(tmp_path / "recording", done, newest).analysis()["driver"]["devices"]
    assert device["end"]["by_kind"]["memory"] == 6 * MIB
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("gpumemprof-driver-")]


@pytest.mark.parametrize("kind", ["linked", "looks_up", "opens"])
@pytest.mark.parametrize("lost", [("LD_PRELOAD",), ("LD_PRELOAD", "GPUMEMPROF_DRIVER"), ("GPUMEMPROF_DRIVER",)])
def test_a_child_that_lost_a_variable_runs_too(newest, programs, tmp_path, kind, lost):
    unset = [word for name in lost for word in ("-u", name)]
    assert run(tmp_path / "recording", ["env", *unset, *programs[kind]], newest).ok().stdout == DIGITS * 2


def test_a_run_within_a_run(newest, programs, tmp_path):
    inner = [harness.COMMAND, "run", "-q", "-o", str(tmp_path / "inner"), "--", *map(str, programs["linked"])]
    assert run(tmp_path / "outer", inner, newest).ok().stdout == DIGITS * 2
    devices = Recorded(tmp_path / "inner", None, newest).analysis()["driver"]["devices"]
    assert [device["end"]["by_kind"]["memory"] for device in devices] == [6 * MIB]


def test_a_driver_that_loses_them_meanwhile_answers_that_it_has_none(newest, tmp_path):
    code = "import ctypes; d = ctypes.CDLL('libcuda.so.1'); print(d.cuBrandNewThing_v2(), d.cuInit(0))"
    older = f"GPUMEMPROF_DRIVER={FAKES / 'cuda' / 'libcuda.so.1'}"
    assert run(tmp_path / "recording", ["env", older, sys.executable, "-c", code], newest).ok().stdout == b"500 0\n"


def elf_hash(name):
    """As the gABI's text has it."""
    h = 0
    for byte in name:
        h = (h << 4) + byte
        g = h & 0xF0000000
        if g:
            h ^= g >> 24
        h &= ~g & 0xFFFFFFFF
    return h


def dynamic_of(data):
    """Tag to value, by the segments; addresses are those in the file, which its first segments hold at the same place."""
    at, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    segments = [struct.unpack_from("<IIQQQQQQ", data, at + 56 * i) for i in range(count)]
    (dynamic,) = [s for s in segments if s[0] == 2]
    assert next(s for s in segments if s[0] == 1)[2:4] == (0, 0)
    return dict(struct.iter_unpack("<QQ", data[dynamic[2]:dynamic[2] + dynamic[5]]))


def copied(env, folder):
    """The library that was loaded for this driver."""
    code = "import os, shutil, sys; shutil.copy(os.environ['LD_PRELOAD'].split(':')[-1], sys.argv[1])"
    run(folder / "copying", [sys.executable, "-c", code, folder / "copy.so"], env).ok()
    return folder / "copy.so"


def test_the_loaders_table_finds_every_name(newest, tmp_path):
    data = copied(newest, tmp_path).read_bytes()
    dynamic = dynamic_of(data)
    assert DT_GNU_HASH not in dynamic
    heads, count = struct.unpack_from("<II", data, dynamic[DT_HASH])
    words = struct.unpack_from(f"<{heads + count}I", data, dynamic[DT_HASH] + 8)
    names = []
    for i in range(count):
        begin = dynamic[DT_STRTAB] + struct.unpack_from("<I", data, dynamic[DT_SYMTAB] + 24 * i)[0]
        names.append(data[begin:data.index(b"\0", begin)])
    for i, name in enumerate(names[1:], 1):
        chain, at = [], words[elf_hash(name) % heads]
        while at:
            assert at not in chain
            chain.append(at)
            at = words[heads + at]
        assert i in chain
    assert {b"cuBrandNewThing", b"cuBrandNewThing_v2", b"cuInit", b"cuMemAlloc_v2"} <= set(names)
    assert sum(name.startswith(b"gpumemprof_spare_") for name in names) == 254


def a_driver(folder, names, machine):
    """With these functions alone, which answer with their places."""
    functions = "".join(f"int {name}(void) {{ return {i}; }}\n" for i, name in enumerate(names))
    (folder / "driver.c").write_text(functions + "int cudbgApi;\n")
    library = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, folder / "driver.c"], check=True)
    return {**machine(driver=False), "LD_LIBRARY_PATH": str(folder)}


def test_there_is_room_for_256_of_79_letters(machine, tmp_path):
    names = [f"cuN{i:03}".ljust(79, "x") for i in range(256)]
    env = a_driver(tmp_path, names, machine)
    code = "import ctypes, sys; d = ctypes.CDLL('libcuda.so.1'); print([d[name]() for name in sys.argv[1:]] == list(range(256)))"
    done = run(tmp_path / "recording", [sys.executable, "-c", code, *names], env).ok()
    assert done.stdout == b"True\n" and "CUDA driver" not in done.stderr.decode()


@pytest.mark.parametrize("names, line", [
    ([f"cuN{i:03}" for i in range(257)], "exports 257 functions unknown to this version (cuN000, …), which has room for 256"),
    (["cuN" + 77 * "x"], "exports a function of too long a name: cuN" + 77 * "x"),
])
def test_beyond_that_the_driver_is_left_alone(machine, tmp_path, names, line):
    env = a_driver(tmp_path, names, machine)
    (tmp_path / "program.c").write_text(f"int {names[-1]}(void); int main(void) {{ return {names[-1]}() + 7; }}\n")
    subprocess.run(["gcc", "-o", tmp_path / "program", tmp_path / "program.c", tmp_path / "libcuda.so.1"], check=True)
    done = run(tmp_path / "recording", [tmp_path / "program"], env)
    assert done.rc == (len(names) - 1 + 7) % 256
    assert f"{tmp_path / 'libcuda.so.1'}: {line}: the CUDA driver is not recorded" in done.stderr.decode()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("gpumemprof-driver-")]
