"""The same files of SQL over the same lake give the same answers on ClickHouse and Spark as on DuckDB."""

import json
import shutil

import engine_answers
import harness
import lakes
import pytest
from gpumemprof._children.lake import schema
from gpumemprof._children.sql.daily import queries

PYTHON = harness.ROOT / "build" / "venvs" / "engines" / "bin" / "python"


def needs(module):
    if not PYTHON.exists() or not harness.has(PYTHON, module):
        pytest.skip(f"{module} is not installed: scripts/setup engines")


def as_set(rows):
    """Order is not of a table, and a time in seconds may differ in its last bit."""
    return sorted(json.dumps({k: round(v, 9) if isinstance(v, float) else v for k, v in row.items()}, sort_keys=True)
                  for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("engine, module", [("clickhouse", "chdb"), ("spark", "pyspark")])
def test_another_engine_gives_the_same_answers(engine, module, lake, training, tmp_path):
    needs(module)
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("no Java here")
    other = lakes.SNAPSHOTS[0].name
    done = harness.execute([PYTHON, engine_answers.__file__, engine, lake, training.name, other], cwd=tmp_path, timeout=300).ok()
    theirs = json.loads(done.stdout)
    for query in queries():
        call = query.name
        if query.parameters:
            given = engine_answers.values(query, training.name, other)
            call += "(" + ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in given) + ")"
        ours = lakes.ask(f"SELECT * FROM {call}", lake)
        assert ours, query.name
        assert as_set(theirs[query.name]) == as_set(ours), query.name


@pytest.mark.slow
def test_a_clickhouse_server_has_the_tables_and_the_peaks(lake, training, tmp_path):
    needs("chdb")
    (event,) = lakes.ask(f"SELECT peak_event FROM ranks WHERE run = '{training.name}' AND memory = 0", lake)
    script = harness.ROOT / "tests" / "lake" / "clickhouse_server.py"
    deploy = harness.ROOT / "deploy" / "clickhouse"
    argv = [PYTHON, script, deploy, lake, training.name, str(event["peak_event"])]
    told = json.loads(harness.execute(argv, cwd=tmp_path, timeout=300).ok().stdout)

    columns = {}
    for column in told["columns"]:
        columns.setdefault(column["table"], []).append(column["name"])
    for table, wanted in schema.TABLES.items():
        names = [column.name for column in wanted]
        assert columns[table] == (names[:2] + ["rank"] + names[2:] if table == "intervals" else names), table
    keys = {row["name"]: row["sorting_key"].split(", ")[:2] for row in told["sorted"]}
    assert keys["intervals"] == ["run", "ifNull(rank"], "by run and rank; memory and time come next"

    wanted = {(row["run"], row["memory"]): row["peak_bytes"] for row in lakes.ask("SELECT run, memory, peak_bytes FROM ranks WHERE peak_event IS NOT NULL", lake)}
    assert {(row["run"], row["memory"]): row["size_bytes"] for row in told["peaks"]} == wanted
    here = f"run = '{training.name}' AND memory = 0"
    for name, query in {
        "lines": f"SELECT line, size_bytes, blocks FROM peak_by_line WHERE {here}",
        "categories": f"SELECT category, size_bytes FROM peak_by_category WHERE {here}",
        "flame": f"SELECT folded, size_bytes FROM flame('{training.name}', 0)",
    }.items():
        found = told[name]
        if name == "flame":  # flameGraph() takes frames, and the daily question the texts that viewers show
            frames = lakes.ask("SELECT s.frames AS frames, SUM(b.size_bytes) AS size_bytes FROM peak_blocks AS b JOIN stacks AS s ON "
                               f"s.run = b.run AND s.stack = b.stack WHERE b.run = '{training.name}' AND b.memory = 0 GROUP BY s.frames", lake)  # fmt: skip
            wanted = {";".join(f.replace(";", ":") for f in row["frames"] or ["(no stack recorded)"]): row["size_bytes"] for row in frames}
            assert {row["folded"]: row["size_bytes"] for row in found} == wanted
        else:
            assert as_set(found) == as_set(lakes.ask(query, lake)), name
