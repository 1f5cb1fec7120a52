"""The second opening of a long run is that of its index, and says the same."""

import json
import os
import pickle
import shutil
import stat
import subprocess

import harness
import pytest
from page_client import served

EVENTS = 200_000  # from here on a run is worth an index
ASKED = (("levels", {"by": "category", "columns": 300}), ("levels", {"by": "line", "columns": 300}), ("times", {"columns": 50}), ("marks", {}),
         ("holders", {"event": "peak"}), ("blocks", {"limit": 500}), ("space", {}), ("search", {"q": "b.py"}), ("block", {"id": 7}))  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """A snapshot whose blocks live for two events each."""
    trace, blocks = [], []
    for i in range(EVENTS // 2 + 1):
        frames = [{"filename": "a.py" if i % 2 else "b.py", "line": i % 50, "name": "f"}]
        block = {"addr": 4096 * (1 + i), "size": 512 * (1 + i % 9), "stream": 0, "frames": frames}
        trace.append({"action": "alloc", "time_us": 1_700_000_000_000_000 + i, **block})
        blocks.append(block)
        if i >= 1:
            trace.append({"action": "free_completed", "time_us": 1_700_000_000_000_000 + i, **blocks[i - 1]})
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [trace]}))
    return path


def answers(page):
    page.run()
    return {f"{what} {query}": page.get(f"/api/v1/{what}", **query)[2] for what, query in (("run", {}), *ASKED)}


def opened(run, *options, page=answers):
    """What an opening answers, and what it says on its standard error."""
    environment = os.environ | {"XDG_CACHE_HOME": str(run.parent / "cache")}
    with served([harness.COMMAND], *options, run, env=environment, stderr=subprocess.PIPE) as (client, process):
        said = page(client)
    return said, process.stderr.read()


def index_of(run):
    return run.with_name(run.name + ".page-index")


def test_the_second_opening_says_the_same(run):
    plain, _ = opened(run, "--no-index")
    assert not index_of(run).exists()
    first, _ = opened(run)
    assert stat.S_IMODE(index_of(run).stat().st_mode) == 0o600
    written = index_of(run).stat()
    second, noise = opened(run)
    assert first == plain and second == plain and noise == ""
    assert index_of(run).stat().st_ino == written.st_ino  # read, not written anew


def test_what_is_damaged_is_said_and_made_anew(run):
    plain, _ = opened(run)
    data = bytearray(index_of(run).read_bytes())
    data[len(data) // 2] ^= 1
    index_of(run).write_bytes(data)
    again, noise = opened(run)
    assert again == plain
    assert noise.count("\n") == 1 and "read again" in noise and index_of(run).name in noise
    repaired = index_of(run).read_bytes()
    assert repaired != bytes(data)
    assert opened(run)[1] == ""


def test_a_changed_file_is_read_again(run):
    opened(run)
    shorter = pickle.loads(run.read_bytes())
    del shorter["device_traces"][0][100:]
    run.write_bytes(pickle.dumps(shorter))
    said, noise = opened(run)
    assert json.loads(said["run {}"])["files"][0]["devices"][0]["events"] == 100
    assert noise == ""


def test_where_none_can_be_beside_it_the_cache_has_it(run, tmp_path):
    index_of(run).mkdir()  # which no file can take the place of, whoever asks
    first, _ = opened(run)
    cached = list((tmp_path / "cache" / "gpumemprof").glob("*.page-index"))
    assert len(cached) == 1 and stat.S_IMODE(cached[0].parent.stat().st_mode) == 0o700
    assert opened(run)[0] == first


def test_a_short_run_leaves_none(tmp_path):
    shutil.copy(harness.ROOT / "tests" / "fixtures" / "recordings" / "range_2.6.pickle", tmp_path / "run.pickle")
    opened(tmp_path / "run.pickle")
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.pickle"]
