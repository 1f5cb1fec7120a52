"""The same files of SQL over the same lake give the same answers on ClickHouse and Spark as on DuckDB."""

import json
import shutil

import engine_answers
import harness
import lakes
import pytest
from gpumemprof._children.sql.daily import queries

PYTHON = harness.ROOT / "build" / "venvs" / "engines" / "bin" / "python"


def needs(module):
    if not PYTHON.exists() or harness.execute([PYTHON, "-c", f"import {module}"]).rc != 0:
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
