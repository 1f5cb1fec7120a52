import subprocess

import pytest

import harness


@pytest.fixture(scope="session")
def line_decoder(tmp_path_factory):
    """The probe's reading of line tables as a library."""
    library = tmp_path_factory.mktemp("lines") / "liblines.so"
    sources = [harness.ROOT / "tests/pythons/line_table.cc", harness.ROOT / "src/probe/python_code.cc"]
    flags = ["-std=c++23", "-O2", "-fPIC", "-shared", f"-I{harness.ROOT / 'src'}"]
    subprocess.run(["g++", *flags, *map(str, sources), "-o", str(library)], check=True)
    return library
