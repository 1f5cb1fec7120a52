"""What is damaged, foreign or of the same name: it is named, and the rest is answered."""

import os
import shutil

import duckdb
import harness
import lakes
import nested
import pyarrow.parquet as pq
import pytest

SNAPSHOT = lakes.SNAPSHOTS[0]
HOSTILE = "it's; DROP VIEW runs; --\n[*?]\x1b[31m{x}"


@pytest.fixture
def own(lake, tmp_path):
    """A lake of our own with one run of two memories' files, and one of a snapshot."""
    copy = tmp_path / "lake"
    shutil.copytree(lake, copy)
    return copy


def runs_of(*paths, options=(), rc=0):
    done = lakes.run(["sql", *paths, "SELECT run FROM runs ORDER BY run", "--format", "csv", *options])
    assert done.rc == rc, done
    return done.stdout.decode().split()[1:], done.stderr.decode()


def intervals(lake, rc=0):
    done = lakes.run(["sql", lake, "SELECT run, COUNT(*) FROM intervals GROUP BY run ORDER BY run", "--format", "csv"])
    assert done.rc == rc, done
    return dict(line.split(",") for line in done.stdout.decode().splitlines()[1:]), done.stderr.decode()


def tear(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_empty(path):
    path.write_bytes(b"")


def make_foreign(path):
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)


def make_newer(path):
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"gpumemprof_schema_version": b"2"}), path)


def drop_a_column(path):
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["size_bytes"]), path)


def change_a_type(path):
    with duckdb.connect() as connection:
        options = "FORMAT parquet, KV_METADATA {gpumemprof_schema: 'gpumemprof.lake', gpumemprof_schema_version: '1'}"
        connection.execute(f"COPY (SELECT * REPLACE (CAST(size_bytes AS VARCHAR) AS size_bytes) FROM '{path}') TO '{path}.new' ({options})").fetchall()
    os.replace(f"{path}.new", path)


def make_a_link(path):
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def make_text(path):
    path.write_text("root:x:0:0\n")


@pytest.mark.parametrize("damage, why", [
    (tear, "too small|No magic bytes"), (make_empty, "too small"), (make_text, "too small|No magic bytes"),
    (make_foreign, "it is not of a lake of gpumemprof"),
    (make_newer, "it has version 2 of the schema, and this gpumemprof reads 1"),
    (drop_a_column, "its column size_bytes is missing, not BIGINT"),
    (change_a_type, "its column size_bytes is VARCHAR, not BIGINT"),
    (make_a_link, "it is not a regular file"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_a_damaged_file_is_named_and_the_rest_is_answered(own, training, damage, why):
    whole, said = intervals(own)
    assert said == "" and set(whole) == {SNAPSHOT.name, training.name}
    damaged = own / training.name / "intervals.0.parquet"
    damage(damaged)
    rest, said = intervals(own, rc=1)
    assert rest == {SNAPSHOT.name: whole[SNAPSHOT.name]}
    assert said.count("\n") == 1 and f"{damaged}: left out: " in said
    assert any(part in said for part in why.split("|")), said


def test_a_column_that_was_added_after_a_file_was_written_is_null_in_it(own, training):
    (ranks,) = (own / training.name).glob("ranks*.parquet")
    pq.write_table(pq.read_table(ranks).drop_columns(["end_time_ns"]), ranks)
    done = lakes.run(["sql", own, f"SELECT run, COUNT(end_time_ns) AS ends, MAX(peak_bytes) > 0 AS peak FROM ranks WHERE run = '{training.name}' GROUP BY run",
                      "--format", "csv"])
    assert (done.rc, done.stderr) == (0, b"") and done.stdout.decode().splitlines()[1] == f"{training.name},0,True"
    assert lakes.run(["sql", own, "SELECT * FROM cross_rank_peak('%')"]).rc == 0


def test_damage_within_a_file_is_named_when_a_query_meets_it(own, training):
    damaged = own / training.name / "intervals.0.parquet"
    content = bytearray(damaged.read_bytes())
    content[4:400] = b"\xff" * 396
    damaged.write_bytes(content)
    done = lakes.run(["sql", own, "SELECT MAX(interval), SUM(birth_event), SUM(address) FROM intervals"])
    assert done.rc == 2 and f"{damaged}: is damaged: " in done.stderr.decode()
    assert lakes.ask("SELECT COUNT(*) AS n FROM ranks", own)[0]["n"] >= 2


def test_a_run_without_a_table_of_runs_is_left_out(own, training):
    tear(own / training.name / "runs.parquet")
    names, said = runs_of(own, rc=1)
    assert names == [SNAPSHOT.name] and "runs.parquet: left out: " in said
    assert f"{own / training.name}: left out: the run has no sound table of runs" in said


def test_a_lake_of_nothing_sound_is_refused(own, training):
    for run in own.iterdir():
        tear(run / "runs.parquet")
    done = lakes.run(["sql", own, "SELECT 1"])
    assert done.rc == 2 and done.stderr.endswith(b"gpumemprof: no run could be opened\n")


def test_an_empty_folder_is_no_lake(tmp_path):
    (tmp_path / "empty").mkdir()
    done = lakes.run(["sql", tmp_path / "empty", "SELECT 1"])
    assert done.rc == 2 and done.stderr.count(b"\n") == 1 and str(tmp_path / "empty").encode() in done.stderr


def test_a_torn_recording_of_several_is_named(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for number, path in enumerate((lakes.RECORDINGS[0], lakes.RECORDINGS[-1])):
        shutil.copy(path, folder / f"host.{number + 1}.1.gmp")
    tear(folder / "host.2.1.gmp")
    done = lakes.run(["sql", folder, "SELECT COUNT(*) FROM intervals", "--no-seal", "--format", "csv"])
    said = lakes.run(["analyze", folder, "--no-seal"])
    assert done.rc == 1 and int(done.stdout.split()[1]) > 0
    assert b"host.2.1.gmp" in done.stderr and b"host.2.1.gmp" in said.stdout + said.stderr


def test_two_runs_of_one_name_are_told_apart(own, training):
    names, said = runs_of(own, own, rc=0)
    assert names == sorted([SNAPSHOT.name, f"{SNAPSHOT.name}-2", training.name, f"{training.name}-2"])
    assert said.count("\n") == 2 and f"named {training.name}-2" in said


def test_the_same_run_replaces_itself_and_another_of_its_name_gets_a_number(training, tmp_path):
    lake = tmp_path / "lake"
    for _ in range(2):
        lakes.export(training, lake)
    shutil.copy(SNAPSHOT, tmp_path / training.name)
    lakes.export(tmp_path / training.name, lake)
    assert sorted(path.name for path in lake.iterdir()) == [training.name, f"{training.name}-2"]
    assert {row["run"] for row in lakes.ask("SELECT run FROM intervals", lake)} == {training.name, f"{training.name}-2"}


def test_names_of_files_are_data(tmp_path):
    folder = tmp_path / HOSTILE
    folder.mkdir()
    shutil.copy(SNAPSHOT, folder / HOSTILE)
    lake = folder / "lake"
    run = lakes.export(folder / HOSTILE, lake)
    assert run.name.startswith("it_s_DROP_VIEW_runs_--_")
    shutil.copytree(run, lake / HOSTILE)  # as somebody else may name it
    names = {row["run"] for row in lakes.ask("SELECT run FROM runs", lake)}
    assert names == {run.name, HOSTILE}
    assert lakes.ask("SELECT SUM(size_bytes) AS s FROM intervals GROUP BY run", lake) == 2 * lakes.ask(
        "SELECT SUM(size_bytes) AS s FROM intervals", SNAPSHOT)
    done = lakes.run(["sql", lake, "SELECT run FROM runs"]).ok()
    assert b"\x1b" not in done.stdout
    lakes.run(["export", folder / HOSTILE, "--to", "sqlite", "-o", folder / "run.db"]).ok()


def test_names_of_functions_are_data(tmp_path):
    name = "f');COPY(SELECT 1)TO'x'--"
    program = tmp_path / "program.py"
    program.write_text(f"import torch\ncode = compile('block = torch.empty(7777, dtype=torch.uint8)', {name!r}, 'exec')\nexec(code, globals())\n")
    recording = nested.record(tmp_path / "recording", [harness.PYTHON, program]).ok().folder
    rows = lakes.ask("SELECT line, size_bytes FROM peak_by_line WHERE size_bytes = 7777", recording)
    assert [row["line"] for row in rows] == [f"{name}:1 <module>"]


@pytest.mark.parametrize("output, message", [
    ("FILE", "is a file: a lake is a folder"), ("RECORDING", "is the input: give another folder"), (None, "--to parquet writes a folder"),
    ("OTHER", "is a recording: give another folder"),
])
def test_a_lake_is_not_written_over_something_else(training, tmp_path, output, message):
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.gmp").write_text("x")
    place = {"FILE": tmp_path / "file", "RECORDING": training, "OTHER": tmp_path / "other"}.get(output)
    done = lakes.run(["export", training, "--to", "parquet", *(["-o", place] if place else [])])
    assert done.rc == 2 and message in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert (tmp_path / "file").read_text() == "x" and not list(training.glob("**/*.parquet"))


def test_a_failed_export_leaves_nothing_behind(tmp_path):
    lake = tmp_path / "lake"
    (tmp_path / "bad.pickle").write_bytes(b"not a snapshot")
    for to, output in (("parquet", lake), ("sqlite", tmp_path / "run.db")):
        done = lakes.run(["export", tmp_path / "bad.pickle", "--to", to, "-o", output])
        assert done.rc == 2 and done.stderr.count(b"\n") == 1
    done = lakes.run(["export", SNAPSHOT, "--to", "sqlite", "-o", tmp_path / "no" / "run.db"])
    assert done.rc == 1 and done.stderr.count(b"\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.pickle"]


def test_an_anonymous_lake_has_no_names_of_yours(training, tmp_path):
    run = lakes.export(training, tmp_path / "lake", "--anonymize")
    assert run.name == "run"
    text = str([lakes.table(run, name) for name in ("runs", "ranks", "stacks", "intervals", "steps", "findings")])
    assert "training" not in text and str(training.parent) not in text
