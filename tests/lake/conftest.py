import lakes
import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed: scripts/setup tests")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: scripts/setup tests")


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", autouse=True)
def cache(cache_folder):
    """Where `sql` keeps what it exported: of these tests alone. Not for the session: a compiler's cache is found there, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache_folder))
        yield cache_folder


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    """The recording of a small real training program."""
    return lakes.record_training(tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="session")
def lake(training, tmp_path_factory):
    """A lake with that run, and a snapshot beside it."""
    folder = tmp_path_factory.mktemp("lakes") / "lake"
    lakes.export(training, folder)
    lakes.export(lakes.SNAPSHOTS[0], folder)
    return folder
