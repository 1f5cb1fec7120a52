"""`python engine_answers.py clickhouse|spark LAKE RUN OTHER`: what another engine answers to every daily question, as JSON.

Its tables are the files of a lake as they lie there, and its views the same files of SQL as those of `gpumemprof sql`."""

import json
import sys
import tempfile

from gpumemprof._children.lake import schema
from gpumemprof._children.sql.daily import queries


def pattern(lake, table):
    return f"{lake}/*/{table}{'.*' if table == schema.BY_MEMORY else ''}.parquet"


def values(query, run, other):
    given = {"in_runs": "%", "in_run": run, "in_memory": 0, "at_event": 150, "at_time_ns": 2**62, "before_run": run, "after_run": other}
    return [given[name] for name in query.parameters]


class ClickHouse:
    def __init__(self, lake):
        from chdb import session

        self.folder = tempfile.TemporaryDirectory()
        self.session = session.Session(self.folder.name)
        # Outer joins give NULL, as everywhere else.
        for setting in ("join_use_nulls = 1", "output_format_json_quote_64bit_integers = 0"):
            self.session.query(f"SET {setting}")
        self.session.query("CREATE DATABASE lake")
        self.session.query("USE lake")
        for table in schema.TABLES:
            self.session.query(f"CREATE VIEW {table} AS SELECT * FROM file('{pattern(lake, table)}', Parquet)")

    def add(self, name, text):
        self.session.query(f"CREATE VIEW {name} AS {text}")

    def ask(self, text):
        return [json.loads(line) for line in str(self.session.query(text, "JSONEachRow")).splitlines()]


class Spark:
    def __init__(self, lake):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        self.spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        for table in schema.TABLES:
            self.spark.read.parquet(pattern(lake, table)).createOrReplaceTempView(table)

    def add(self, name, text):
        self.spark.sql(text).createOrReplaceTempView(name)

    def ask(self, text):
        return [row.asDict() for row in self.spark.sql(text).collect()]


def main():
    engine, lake, run, other = sys.argv[1:]
    asked = {"clickhouse": ClickHouse, "spark": Spark}[engine](lake)
    answers = {}
    for query in queries():
        text = query.with_values(*values(query, run, other))
        if not query.parameters:
            asked.add(query.name, text)
            text = f"SELECT * FROM {query.name}"
        answers[query.name] = asked.ask(text)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
