import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed: scripts/setup tests")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: scripts/setup tests")
