import shutil

import pytest

import harness


def pytest_sessionstart(session):
    if shutil.which(harness.COMMAND) is None:
        pytest.exit(f"no command at {harness.COMMAND}: run `make`, or set GPUMEMPROF_BIN", returncode=2)


@pytest.fixture
def record(tmp_path):
    """record(argv, options=(), **popen) -> Finished; every call gets a folder of its own."""
    count = 0

    def run(argv, options=(), **popen):
        nonlocal count
        count += 1
        return harness.record(tmp_path / f"recording{count}", argv, options, **popen)

    return run
