"""`python clickhouse_server.py DEPLOY LAKE RUN EVENT`: the tables of deploy/clickhouse, loaded; what they answer, as JSON."""

import json
import pathlib
import sys
import tempfile

from chdb import session


def statements(text):
    """Without comments, which the embedded engine takes for the beginning of a statement."""
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [one for one in "\n".join(lines).split(";\n") if one.strip()]


def main():
    deploy, lake, run, event = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        server = session.Session(folder)
        server.query("SET output_format_json_quote_64bit_integers = 0")

        def rows(text):
            return [json.loads(line) for line in str(server.query(text, "JSONEachRow")).splitlines()]

        def sql(name):
            return pathlib.Path(deploy, name).read_text()

        for name in ("schema.sql", "schema.sql", "load.sql"):  # the tables may be there already
            for one in statements(sql(name).replace("'lake/", f"'{lake}/")):
                server.query(one)
        flame = sql("flame.sql")
        for name, value in {"{run:String}": f"'{run}'", "{memory:Int64}": "0", "{event:Int64}": event}.items():
            flame = flame.replace(name, value)
        (flame,) = statements(flame.rstrip().rstrip(";") + ";\n")
        json.dump({
            "columns": rows("SELECT table, name, type FROM system.columns WHERE database = 'gpumemprof' ORDER BY table, position"),
            "sorted": rows("SELECT name, sorting_key FROM system.tables WHERE database = 'gpumemprof'"),
            "peaks": rows("SELECT run, memory, sum(size_bytes) AS size_bytes FROM gpumemprof.peak_lines GROUP BY run, memory"),
            "lines": rows(f"SELECT line, sum(size_bytes) AS size_bytes, sum(blocks) AS blocks FROM gpumemprof.peak_lines WHERE run = '{run}' AND memory = 0 GROUP BY line"),
            "categories": rows(f"SELECT category, sum(size_bytes) AS size_bytes FROM gpumemprof.peak_lines WHERE run = '{run}' AND memory = 0 GROUP BY category"),
            "flame": rows(flame),
        }, sys.stdout)  # fmt: skip


if __name__ == "__main__":
    main()
