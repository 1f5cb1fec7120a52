"""`analyze` over many recordings and snapshots on Spark, one row for each: spark-submit analyze_on_spark.py PATH...

Every executor needs gpumemprof and the files. A file that cannot be read is a row with the reason, and the others are
answered. The figures are those of `gpumemprof analyze`, which runs in the executors.
"""

import sys

from pyspark.sql import SparkSession

COLUMNS = "path string, device string, peak_bytes long, end_bytes long, lost_events long, first_finding string, error string"


def analyze(batches):
    """Paths in, reports out: runs in the executors."""
    import gpumemprof
    import pandas

    names = [column.split()[0] for column in COLUMNS.split(", ")]
    for batch in batches:
        rows = []
        for path in batch["path"]:
            row = dict.fromkeys(names) | {"path": path}
            try:
                report = gpumemprof.load(path).analysis()
            except (OSError, ValueError) as error:
                rows.append(row | {"error": str(error)})
                continue
            row["lost_events"] = report["lost"]["events"]
            if report["devices"]:  # the one whose peak is the answer comes first
                main = report["devices"][0]
                row |= {"device": main["device"], "peak_bytes": main["peak"]["allocated_bytes"]}
                row["end_bytes"] = main["end"]["allocated_bytes"]
            if report["findings"]:
                row["first_finding"] = report["findings"][0]["title"]
            rows.append(row)
        yield pandas.DataFrame(rows, columns=names)


def reports(spark, paths):
    """A frame of the columns above; at most one path a task, as recordings differ in length."""
    named = spark.createDataFrame([(path,) for path in paths], "path string").repartition(max(len(paths), 1))
    return named.mapInPandas(analyze, COLUMNS)


if __name__ == "__main__":
    session = SparkSession.builder.appName("gpumemprof").getOrCreate()
    for row in reports(session, sys.argv[1:]).orderBy("peak_bytes", ascending=False).collect():
        print(row.asDict())
