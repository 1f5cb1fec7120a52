"""`ask_clickhouse.py LAKE QUERY`: the files of a lake as views of ClickHouse's embedded engine, and one question."""

import glob
import sys
import tempfile

from chdb import session

lake, query = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    engine = session.Session(folder)
    engine.query("SET join_use_nulls = 1")
    engine.query("SET max_threads = 2")
    engine.query("CREATE DATABASE lake")
    engine.query("USE lake")
    for path in glob.glob(f"{lake}/*/*.parquet"):
        table = path.rpartition("/")[2].split(".")[0]
        files = f"{lake}/*/{table}.*.parquet" if table == "intervals" else f"{lake}/*/{table}.parquet"
        engine.query(f"CREATE VIEW IF NOT EXISTS {table} AS SELECT * FROM file('{files}', Parquet)")
    print(engine.query(query, "CSV"))
