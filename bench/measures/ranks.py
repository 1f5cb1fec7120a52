"""What many ranks take, merged into one lake and asked together: one recorded rank, and as many like it."""
import json
import os
import pathlib
import shutil
import sys

import launch
from rows import Row

sys.path.insert(0, os.path.join(launch.ROOT, "python"))
from gpumemprof._children.lake import parquet, schema  # noqa: E402
from gpumemprof._children.lake.engine import connect, quoted, rows  # noqa: E402
from gpumemprof._children.sql.daily import queries  # noqa: E402

ENGINES = os.path.join(launch.BUILD, "venvs", "engines", "bin", "python")
MOST_KIB = 1 << 20
PEAK = "SELECT * FROM cross_rank_peak('%')"
LINES = "SELECT run, line, size_bytes FROM peak_by_line ORDER BY size_bytes DESC LIMIT 10"


def make_rank(lake, run, number):
    """The tables of `run` as those of another rank, whose times lie some slices later."""
    name = f"rank-{number:02}"
    os.makedirs(f"{lake}/{name}")
    with connect() as connection:
        rows(connection, "SET threads = 2")
        ((slice_ns,),) = rows(connection, f"SELECT MAX(slice_ns) FROM read_parquet({quoted(f'{run}/slices.parquet')})")
        later = slice_ns * 7 * number
        for path in sorted(pathlib.Path(run).glob("*.parquet")):
            table = path.name.split(".")[0]
            other = [f"{quoted(name)} AS run"]
            for column in schema.TABLES[table]:
                if column.name in ("birth_time_ns", "death_time_ns", "peak_time_ns"):
                    other.append(f"CAST({column.name} + {later} AS BIGINT) AS {column.name}")
                elif column.name == "slice":
                    other.append(f"CAST(slice + {7 * number} AS BIGINT) AS slice")
                elif column.name == "rank":
                    other.append(f"CAST({number} AS BIGINT) AS rank")
            query = f"SELECT * REPLACE ({', '.join(other)}) FROM read_parquet({quoted(str(path))})"
            parquet._copy(connection, query, f"{lake}/{name}/{path.name}", name)


def make_lake(lake, ranks, events):
    """Rows of `intervals`, and what the export of one rank took."""
    with launch.folder() as run, launch.folder() as one:
        launch.run([launch.helper("make_recording"), run, "--events", str(events), "--live", "10000"])
        launch.run([launch.gpumemprof(), "seal", run])
        fact, _ = launch.timed([launch.gpumemprof(), "export", run, "--to", "parquet", "-o", one])
        (exported,) = pathlib.Path(one).iterdir()
        for number in range(ranks):
            make_rank(lake, str(exported), number)
    with connect() as connection:
        ((count,),) = rows(connection, f"SELECT COUNT(*) FROM read_parquet({quoted(lake + '/*/intervals.*.parquet')})")
    return count, fact


def ask(lake, query):
    """What it took, and the rows."""
    fact, answer = launch.timed([launch.gpumemprof(), "sql", lake, query, "--format", "json"])
    return fact, json.loads(answer)


def text(fact):
    return f"{fact['seconds']:.1f} s ({fact['cpu_seconds']:.1f} s of CPU), {fact['peak_rss_kib'] / 1024:.0f} MiB"


def merged(ranks, events):
    with launch.folder() as parts, launch.folder() as lake:
        _, export = make_lake(parts, ranks, events)
        for run in pathlib.Path(parts).iterdir():  # merging is moving
            shutil.move(run, lake)
        (peak, _), (lines, _) = ask(lake, PEAK), ask(lake, LINES)
    seconds = peak["seconds"] + lines["seconds"]
    most = max(peak["peak_rss_kib"], lines["peak_rss_kib"])
    return [
        Row(f"{ranks} ranks of {events:,} events, merged and asked for the cross-rank peak and the lines that held most",
            f"{seconds:.1f} s, {most / 1024:.0f} MiB", "≤ 30 s, ≤ 1 GiB", seconds <= 30 and most <= MOST_KIB, section="more",
            raw={"runs": [peak, lines]}),
        Row(f"export of one of them, {events:,} events", text(export), section="more", raw={"runs": [export]}),
    ]  # fmt: skip


def many_rows(ranks, events):
    with launch.folder() as lake:
        count, _ = make_lake(lake, ranks, events)
        fact, (answer,) = ask(lake, PEAK)
        facts = {"DuckDB": fact}
        if os.path.exists(ENGINES):
            (query,) = [one for one in queries() if one.name == "cross_rank_peak"]
            asked = [ENGINES, os.path.join(launch.PROGRAMS, "ask_clickhouse.py"), lake, query.with_values("%")]
            facts["ClickHouse"], told = launch.timed(asked)
            if told.strip() != ",".join(str(value) for value in answer.values()):
                raise launch.Failed(f"DuckDB answers {answer}, ClickHouse {told.strip()}")
    return [Row(f"cross-rank peak of {ranks} ranks, {count:,} rows of intervals, {engine}", text(fact), "≤ 10 s, ≤ 1 GiB",
                fact["seconds"] <= 10 and fact["peak_rss_kib"] <= MOST_KIB, section="more", raw={"runs": [fact]})
            for engine, fact in facts.items()]  # fmt: skip


def opened(runs):
    """Runs of a few events, so that all of it is opening."""
    with launch.folder() as one, launch.folder() as lake:
        make_lake(one, 1, 1000)
        for number in range(runs):
            shutil.copytree(f"{one}/rank-00", f"{lake}/run-{number:04}", copy_function=os.link)
        fact, _ = ask(lake, "SELECT MAX(peak_bytes) AS most FROM ranks")
    return [Row(f"a lake of {runs} runs opened and asked for the highest peak", text(fact), section="more", raw={"runs": [fact]})]


def parts(size):
    ranks, events, events_of_many = size["ranks"]
    return [lambda: merged(ranks, events), lambda: many_rows(ranks, events_of_many), lambda: opened(ranks),
            lambda: opened(8 * ranks)]
