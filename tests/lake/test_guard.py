"""A query reads what was opened, and can neither read nor write anything else, unless that is asked for."""

import os
import shutil
import signal
import subprocess

import harness
import lakes
import pytest
from gpumemprof._children.lake.engine import CannotDo
from gpumemprof._children.sql.opened import Opened
from gpumemprof._children.sql.statements import Asker

SECRET = "0f0c2b4e"
ENDLESS = "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT COUNT(*) FROM a"
# HERE stands for a folder that may be written, LAKE for the lake, SECRET for a file beside it.
WRITES = [
    "COPY (SELECT 1) TO 'HERE/new.csv'",
    "COPY (SELECT 1 AS one) TO 'LAKE/RUN/intervals.0.parquet' (FORMAT parquet)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'HERE/new.csv'",
    "EXPLAIN /* ANALYZE */ ANALYZE COPY (SELECT 1) TO 'HERE/new.csv'",
    "EXPLAIN ANALYZE EXPLAIN ANALYZE COPY (SELECT 1) TO 'HERE/new.csv'",
    "PREPARE p AS COPY (SELECT 1) TO 'HERE/new.csv'",
    "SELECT 1; COPY (SELECT 1) TO 'HERE/new.csv'",
    "ATTACH 'HERE/new.db'",
    "ATTACH 'LAKE/RUN/runs.parquet'",
    "EXPORT DATABASE 'HERE/new'",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "CALL enable_logging(storage = 'file', storage_path = 'HERE/log')",
    "SELECT * FROM enable_logging(storage = 'file', storage_path = 'HERE/log')",
    "SELECT * FROM query('COPY (SELECT 1) TO ''HERE/new.csv''')",
    "PRAGMA database_list",
]
READS = [
    "SELECT * FROM read_csv('SECRET')",
    "SELECT * FROM read_text('SECRET')",
    "SELECT * FROM read_blob('LAKE/../SECRET')",
    "SELECT * FROM 'SECRET'",
    "SELECT * FROM glob('HERE/*')",
    "SELECT * FROM sniff_csv('SECRET')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('LAKE/*/*.parquet')",
    "COPY runs FROM 'SECRET'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM options",
    "SELECT * FROM opened",
]
SETTINGS = ["SET enable_external_access = true", "SET lock_configuration = false", "SET allowed_directories = ['/']",
            "RESET allowed_paths", "SET temp_directory = 'HERE'", "PRAGMA enable_external_access = true",
            "SET extension_directory = 'HERE'", "SET profiling_output = 'HERE/profile'", "SET log_query_path = 'HERE/log'",
            "SET file_search_path = '/etc'"]


@pytest.fixture
def place(lake, training, tmp_path):
    """A lake of its own, which attacks may break, a folder and a secret."""
    copy = tmp_path / "lake"
    shutil.copytree(lake, copy)
    (tmp_path / "here").mkdir()
    (tmp_path / "secret.csv").write_text(f"secret\n{SECRET}\n")
    return tmp_path, training.name


def state(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def filled(place, statement):
    folder, run = place
    for word, path in (("HERE", folder / "here"), ("LAKE", folder / "lake"), ("'SECRET'", f"'{folder / 'secret.csv'}'"),
                       ("RUN", run)):
        statement = statement.replace(word, str(path))
    return statement


def attack(place, statement, options=()):
    folder = place[0]
    return lakes.run(["sql", folder / "lake", filled(place, statement), *options], cwd=folder / "here",
                     env={**os.environ, "HOME": str(folder / "here")})


@pytest.mark.parametrize("statement", WRITES + READS + SETTINGS)
def test_a_query_reaches_nothing_that_was_not_opened(place, statement, tmp_path_factory, monkeypatch):
    """As the command asks, in this process."""
    monkeypatch.chdir(place[0] / "here")
    monkeypatch.setenv("HOME", str(place[0] / "here"))
    before, seen = state(place[0]), []
    opened = Opened(str(tmp_path_factory.mktemp("private")))
    opened.add([str(place[0] / "lake")])
    opened.make_views()
    opened.lock()
    asker = Asker(opened.connection)
    with pytest.raises(CannotDo) as refused:
        for one in asker.split(filled(place, statement)):
            asker.ask(one, lambda names, rows: seen.extend(rows))
    assert SECRET not in str(refused.value) + str(seen)
    opened.connection.close()
    assert state(place[0]) == before


@pytest.mark.parametrize("statement", [WRITES[0], READS[0], SETTINGS[0]])
def test_an_attack_ends_in_one_line(place, statement):
    before = state(place[0])
    done = attack(place, statement)
    assert (done.rc, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"gpumemprof: ") and done.stderr.count(b"\n") == 1
    assert state(place[0]) == before


def test_allow_files_lets_a_query_read_and_write(place):
    attack(place, "COPY (SELECT secret FROM read_csv('SECRET', all_varchar = true)) TO 'HERE/new.csv'", ["--allow-files"]).ok()
    assert (place[0] / "here" / "new.csv").read_text() == f"secret\n{SECRET}\n"


def test_nothing_is_imported_from_the_working_folder(place):
    for name in ("duckdb.py", "json.py", "gpumemprof.py", "readline.py"):
        (place[0] / "here" / name).write_text("open('imported', 'w')\n")
    attack(place, "SELECT 1").ok()
    assert not (place[0] / "here" / "imported").exists()


def test_an_endless_query_is_stopped_by_its_timeout(lake):
    done = lakes.run(["sql", lake, ENDLESS, "--timeout", "0.5"])
    assert done.rc == 2 and b"stopped after 0.5 s (--timeout)" in done.stderr


@pytest.mark.parametrize("number, rc", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_a_query_and_leaves_nothing(lake, tmp_path, number, rc):
    argv = [harness.COMMAND, "sql", str(lake), ENDLESS, "--timeout", "50"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        assert harness.until(lambda: list(tmp_path.iterdir()))
        process.send_signal(number)
        assert process.wait(timeout=40) == rc
    assert list(tmp_path.iterdir()) == []


def test_private_folders_are_removed(lake, tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    lakes.run(["sql", lakes.SNAPSHOTS[0], "SELECT 1"], env=env).ok()
    assert lakes.run(["sql", lake, "SELEC"], env=env).rc == 2
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_gets_no_complaint(lake):
    done = harness.execute(["sh", "-c", f"{harness.COMMAND} sql {lake} 'SELECT * FROM range(1000000)' --format csv | head -2"])
    assert done.ok().stdout == b"range\n0\n" and done.stderr == b""


def test_a_full_disk_behind_standard_output_is_one_line(lake):
    with open("/dev/full", "w") as full:
        done = lakes.run(["sql", lake, "SELECT * FROM runs"], stdout=full)
    assert (done.rc, done.stderr) == (1, b"gpumemprof: No space left on device\n")
