"""The example that maps `analyze` over recordings on Spark, with executors that are processes of their own."""

import ast
import os
import shutil

import harness
import lakes
import pytest
from test_engines import PYTHON, needs


@pytest.mark.slow
def test_analyze_is_mapped_over_recordings(training, tmp_path):
    needs("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java here")
    (tmp_path / "torn.gmp").write_bytes(b"no recording")
    paths = [training, *lakes.RECORDINGS[:2], lakes.SNAPSHOTS[0], tmp_path / "torn.gmp"]
    submit = PYTHON.parent / "spark-submit"
    env = os.environ | {"PYSPARK_PYTHON": str(PYTHON), "PYSPARK_DRIVER_PYTHON": str(PYTHON), "SPARK_LOCAL_IP": "127.0.0.1"}
    argv = [submit, "--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false",
            harness.ROOT / "examples" / "analyze_on_spark.py", *paths]  # fmt: skip
    done = harness.execute(argv, cwd=tmp_path, env=env, timeout=300).ok()
    told = [line for line in done.stdout.decode().splitlines() if line.startswith("{")]  # between words of the cluster
    rows = {row["path"]: row for row in map(ast.literal_eval, told)}
    assert set(rows) == {str(path) for path in paths}
    for path in paths[:-1]:
        report, row = lakes.analysis(path), rows[str(path)]
        main = report["devices"][0]
        assert (row["device"], row["peak_bytes"]) == (main["device"], main["peak"]["allocated_bytes"])
        assert row["end_bytes"] == main["end"]["allocated_bytes"] and row["lost_events"] == report["lost"]["events"]
        assert row["error"] is None
    torn = rows[str(paths[-1])]
    assert torn["peak_bytes"] is None and "torn.gmp" in torn["error"]
