"""The views and macros against the plain way of counting; one shot, prompt, and every format."""

import collections
import contextlib
import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import re
import subprocess
import termios
import time

import harness
import lakes
import nested
import pytest
from gpumemprof._children.sql.daily import queries

SNAPSHOT = lakes.SNAPSHOTS[0]
ENDLESS = "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT COUNT(*) FROM a"


@pytest.fixture(scope="module")
def tables(lake, training):
    run = lake / training.name
    return {name: lakes.table(run, name) for name in ("ranks", "intervals", "stacks", "categories")}


@pytest.fixture(scope="module")
def at_peak(tables):
    """(interval, what it was) at the peak of the training program."""
    earlier = collections.defaultdict(list)
    for row in tables["categories"]:
        earlier[row["interval"]].append(row)
    event = tables["ranks"][0]["peak_event"]
    return [(row, lakes.category_at(row, earlier, event)) for row in lakes.live_at(tables["intervals"], event)]


def test_every_query_answers(lake):
    """Each is called as its first line says, with values for its parameters."""
    for query in queries():
        values = {"runs": "%", "run": SNAPSHOT.name, "memory": 0, "event": 5, "time_ns": 2**62, "before_run": SNAPSHOT.name, "after_run": SNAPSHOT.name}
        names = query.call[len(query.name):].strip("()").split(", ") if query.parameters else []
        call = ", ".join(f"'{values[n]}'" if isinstance(values[n], str) else str(values[n]) for n in names)
        rows = lakes.ask(f"SELECT * FROM {query.name}" + (f"({call})" if names else ""), lake)
        assert rows, query.name


def test_peaks_are_those_of_the_ranks(lake, training, tables):
    rows = lakes.ask(f"SELECT * FROM peaks WHERE run = '{training.name}'", lake)
    assert [(row["memory"], row["peak_bytes"], row["peak_event"]) for row in rows] == [
        (rank["memory"], rank["peak_bytes"], rank["peak_event"]) for rank in tables["ranks"]]


def test_peak_by_category_counts_what_each_allocation_then_was(lake, training, at_peak):
    expected = collections.Counter()
    for row, category in at_peak:
        expected[category] += row["size_bytes"]
    rows = lakes.ask(f"SELECT * FROM peak_by_category WHERE run = '{training.name}'", lake)
    assert {row["category"]: row["size_bytes"] for row in rows} == expected
    assert {"parameter", "optimizer state"} <= set(expected)


def test_peak_by_line_adds_up_to_the_peak(lake, training, tables, at_peak):
    lines = {row["stack"]: row["line"] for row in tables["stacks"]}
    expected = collections.Counter()
    for row, _ in at_peak:
        expected[lines[row["stack"]]] += row["size_bytes"]
    rows = lakes.ask(f"SELECT * FROM peak_by_line WHERE run = '{training.name}'", lake)
    assert {row["line"]: row["size_bytes"] for row in rows} == expected
    assert sum(expected.values()) == tables["ranks"][0]["peak_bytes"]


def test_live_at_an_event_is_what_was_born_and_had_not_died(lake, training, tables):
    last = tables["ranks"][0]["events"]
    for event in (0, 1, last // 2, last):
        rows = lakes.ask(f"SELECT interval, size_bytes FROM live_at('{training.name}', 0, {event})", lake)
        assert sorted((row["interval"], row["size_bytes"]) for row in rows) == sorted(
            (row["interval"], row["size_bytes"]) for row in lakes.live_at(tables["intervals"], event))


def test_a_time_is_the_last_event_until_then(lake, training, tables):
    times = sorted((row[f"{end}_time_ns"], row[f"{end}_event"]) for row in tables["intervals"] for end in ("birth", "death")
                   if row[f"{end}_time_ns"] is not None)
    for time_ns, _ in (times[0], times[len(times) // 2], times[-1]):
        (row,) = lakes.ask(f"SELECT * FROM event_at('{training.name}', 0, {time_ns})", lake)
        assert row["event"] == max(event for time_then, event in times if time_then <= time_ns)


def test_levels_are_the_running_sum(lake, training, tables):
    rows = lakes.ask(f"SELECT * FROM levels('{training.name}', 0)", lake)
    assert {row["event"]: row["live_bytes"] for row in rows} == lakes.level_after_each(tables["intervals"])


def test_what_grew_is_the_difference_of_the_lines(training, tmp_path):
    other = lakes.record_training(tmp_path, "longer")
    program = tmp_path / "longer.py"
    program.write_text(lakes.TRAIN.replace("3_000_001", "5_000_001"))
    nested.record(tmp_path / "grown", [harness.PYTHON, program]).ok()
    rows = lakes.ask("SELECT * FROM grew('longer', 'grown')", other, tmp_path / "grown")
    assert rows[0]["grown_bytes"] == 2_000_000 and rows[0]["line"].endswith(f"longer.py:{spike_line()} <module>")
    assert all(row["grown_bytes"] == 0 for row in rows[1:])


def spike_line():
    return next(number for number, line in enumerate(lakes.TRAIN.splitlines(), 1) if line.startswith("spike"))


def test_the_flame_graph_is_the_folded_export(lake, training):
    rows = lakes.ask(f"SELECT * FROM flame('{training.name}', 0)", lake)
    theirs = collections.Counter()
    for line in lakes.run(["export", training, "--to", "folded"]).ok().stdout.decode().splitlines():
        stack, _, size = line.rpartition(" ")
        theirs[stack] += int(size)
    assert {row["folded"]: row["size_bytes"] for row in rows} == theirs


@pytest.mark.parametrize("path", [SNAPSHOT, lakes.RECORDINGS[0]], ids=lambda path: path.name)
def test_recordings_and_snapshots_need_no_lake(path):
    (row,) = lakes.ask("SELECT MAX(peak_bytes) AS most FROM ranks", path, options=["--no-seal"])
    assert row["most"] == max(lakes.peak_of(device) for device in lakes.analysis(path)["devices"])


def test_formats_have_the_same_rows(lake):
    query = "SELECT run, memory, peak_bytes, rank FROM peaks"
    rows = lakes.ask(query, lake)
    text = lakes.run(["sql", lake, query, "--format", "csv"]).ok().stdout.decode()
    assert [{**row, "memory": int(row["memory"]), "peak_bytes": int(row["peak_bytes"]), "rank": None}
            for row in csv.DictReader(io.StringIO(text))] == rows
    lines = lakes.run(["sql", lake, query]).ok().stdout.decode().splitlines()
    assert lines[-1] == f"({len(rows)} rows)"
    assert [line.split()[2] for line in lines[2:-1]] == [str(row["peak_bytes"]) for row in rows]


def test_a_table_of_many_rows_has_every_row(lake):
    lines = lakes.run(["sql", lake, "SELECT * FROM range(1200)"]).ok().stdout.decode().splitlines()
    assert [int(line) for line in lines[2:-1]] == list(range(1200)) and lines[-1] == "(1200 rows)"


def test_a_query_is_read_from_a_file_or_standard_input(lake, tmp_path):
    (tmp_path / "query.sql").write_text("SELECT 1 AS one;\nSELECT 2 AS two;\n")
    for done in (lakes.run(["sql", lake, "--file", tmp_path / "query.sql", "--format", "json"]),
                 harness.execute([harness.COMMAND, "sql", lake, "--format", "json"], stdin=(tmp_path / "query.sql").open())):
        assert json.loads(done.ok().stdout) == [{"two": 2}]


def wait_for_work(session, least_s=4):
    """Until the processes of the session have used so much more of the processors: more than they take to begin."""
    def used_s():
        ticks = 0
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12]) if int(fields[3]) == session else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    begun_s, deadline = used_s(), time.monotonic() + 60
    while used_s() < begun_s + least_s and time.monotonic() < deadline:
        time.sleep(0.1)


def test_a_terminal_gets_a_prompt(lake):
    master, slave = pty.openpty()
    with subprocess.Popen([harness.COMMAND, "sql", str(lake)], stdin=slave, stdout=slave, stderr=slave,
                          start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as process:
        os.close(slave)
        os.write(master, f"{ENDLESS};\n".encode())
        text = b""
        while b"FROM a;" not in text:
            text += os.read(master, 4096)
        wait_for_work(process.pid)
        os.write(master, b"\x03")
        os.write(master, b".tables\nSELECT 6 *\n7 AS answer;\nSELEC;\n.quit\n")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                text += os.read(master, 4096)
            except OSError:  # the terminal was closed at the other end
                break
        assert process.wait(timeout=30) == 0
    os.close(master)
    assert b"live_at(run, memory, event)" in text and b"answer" in text and b"42" in text and b"syntax error" in text
    assert b"gpumemprof: stopped" in text


@pytest.mark.parametrize("argv, message", [
    (["LAKE", "no_such_run", "SELECT 1"], "no_such_run: No such file or directory"),
    (["SELECT 1"], "sql: name the runs before the query"),
    (["LAKE", ""], "no query was given"),
    (["LAKE", "SELEC 1"], 'Parser Error: syntax error at or near "SELEC"'),
    (["LAKE", "SELECT * FROM blocks"], "Table with name blocks does not exist"),
    (["LAKE", "SELECT * FROM nothing"], "Table with name nothing does not exist! There are runs, ranks, "),
    (["LAKE", "SELECT * FROM peek"], 'does not exist! Did you mean "peaks"?'),
    (["LAKE", "SELECT * FROM foo(1)"], "Table Function with name foo does not exist! There are "),
    (["LAKE", "SELECT * FROM grew('nope', 'nope')"], "no run is named nope (SELECT run FROM runs lists them)"),
    (["LAKE", f"SELECT COUNT(*) FROM grew('{SNAPSHOT.name}', 'nope')"], "no run is named nope (SELECT run FROM runs lists them)"),
    (["LAKE", "SELECT * FROM live_at('nope', 0, 1)"], "no run is named nope (SELECT run FROM runs lists them)"),
    (["LAKE", f"SELECT COUNT(*) FROM live_at('{SNAPSHOT.name}', 9999, 1)"], f"{SNAPSHOT.name} has no memory 9999 "),
    (["LAKE", f"SELECT * FROM event_at('{SNAPSHOT.name}', 9999, 1)"], f"{SNAPSHOT.name} has no memory 9999 "),
])
def test_a_wrong_question_gets_one_line(lake, argv, message):
    done = lakes.run(["sql", *[lake if word == "LAKE" else word for word in argv]])
    assert done.rc == 2 and done.stdout == b""
    assert message in done.stderr.decode() and done.stderr.count(b"\n") == 1


def test_without_duckdb_one_line_says_what_to_install(lake, tmp_path):
    (tmp_path / "duckdb.py").write_text("raise ImportError('not here')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for argv in (["sql", lake, "SELECT 1"], ["export", SNAPSHOT, "--to", "parquet", "-o", tmp_path / "lake"]):
        done = lakes.run(argv, env=env)
        assert (done.rc, done.stderr.count(b"\n")) == (2, 1)
        assert re.fullmatch(rb"gpumemprof: DuckDB is required: install it for /\S+ with `pip install duckdb`\n", done.stderr)
    assert not (tmp_path / "lake").exists()
    for argv in (["sql", "no_such_run", "SELECT 1"], ["runs", "add", "no_such_run", "--store", tmp_path / "store"],
                 ["export", "no_such_run", "--to", "parquet", "-o", tmp_path / "lake"]):
        done = lakes.run(argv, env=env, cwd=tmp_path)
        assert (done.rc, done.stderr) == (2, b"gpumemprof: no_such_run: No such file or directory\n")
    file = tmp_path / "duckdb.py"
    wrong = ((file, 2, "is a file: a lake is a folder"), (file / "lake", 1, f"{file} is not a folder"))
    for output, code, why in wrong:
        done = lakes.run(["export", SNAPSHOT, "--to", "parquet", "-o", output], env=env)
        assert (done.rc, done.stderr.decode()) == (code, f"gpumemprof: {output}: {why}\n")


def test_a_python_without_the_package_is_named(lake, tmp_path):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {harness.PYTHON} -S \"$@\"\n")
    python.chmod(0o755)
    done = lakes.run(["sql", lake, "SELECT 1"], env={**os.environ, "GPUMEMPROF_PYTHON": str(python)})
    assert done.rc == 2 and b"has no gpumemprof of this version: install it there" in done.stderr


def test_the_page_of_the_command_lists_every_query():
    page = (harness.ROOT / "docs" / "commands" / "sql.md").read_text()
    for query in queries():
        assert f"| `{query.call}` | {query.meaning.rstrip('.')} |" in page


def test_ranks_of_one_run_are_told_apart(tmp_path):
    program = tmp_path / "rank.py"
    program.write_text("import os, torch\nkept = torch.empty(1000 * (1 + int(os.environ['RANK'])), dtype=torch.uint8)\n")
    argv = ["sh", "-c", f"RANK=0 {harness.PYTHON} {program} & RANK=1 {harness.PYTHON} {program} & wait"]
    recording = harness.record(tmp_path / "ranks", argv).ok().folder
    rows = lakes.ask("SELECT rank, line, size_bytes FROM peak_by_line WHERE line LIKE '%rank.py%' ORDER BY rank", recording)
    assert rows == [{"rank": n, "line": f"{program}:2 <module>", "size_bytes": 1000 * (1 + n)} for n in (0, 1)]
    run = lakes.export(recording, tmp_path / "lake")
    assert len(list(run.glob("intervals.*.parquet"))) == 2
    (run / "intervals.1.parquet").write_bytes(b"torn")
    done = lakes.run(["sql", tmp_path / "lake", "SELECT COUNT(DISTINCT memory) FROM intervals", "--format", "csv"])
    assert (done.rc, done.stdout) == (1, b"count(DISTINCT memory)\n1\n") and b"intervals.1.parquet: left out" in done.stderr
