"""Libraries that define TensorFlow's names for themselves keep their own functions, and are not recorded."""
import pytest

import harness

PROGRAM = "import ctypes, sys; [ctypes.CDLL(p, mode=int(sys.argv[1])).use_foreign(5) for p in sys.argv[2:]]"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Two of them, each with its own copy."""
    folder = tmp_path_factory.mktemp("foreign")
    paths = [folder / "libone.so", folder / "libtwo.so"]
    for path in paths:
        harness.execute(["g++", "-O1", "-std=c++17", "-shared", "-fPIC", harness.ROOT / "tests/probe/foreign_tsl.cc",
                         "-o", path]).ok()
    return paths


@pytest.mark.parametrize("mode", ["0", "256"], ids=["RTLD_LOCAL", "RTLD_GLOBAL"])
def test_a_copy_of_the_classes_in_another_library_is_left_alone(libraries, record, mode):
    argv = [harness.PYTHON, "-c", PROGRAM, mode, *libraries]
    alone = harness.execute(argv).ok()
    recorded = record(argv)
    assert recorded.rc == 0 and recorded.stdout == alone.stdout, repr(recorded)
    assert harness.files(recorded.folder) == []
    if mode == "0":
        assert alone.stdout == b"5 5 5 5\n" * 2
