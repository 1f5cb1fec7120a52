"""What a run takes as Parquet, and what writing it and a query take."""
import pathlib

import launch
from rows import Row


def measure(events):
    with launch.folder() as run, launch.folder() as lake:
        launch.run([launch.helper("make_recording"), run, "--events", str(events), "--live", "10000"])
        launch.run([launch.gpumemprof(), "seal", run])
        export = [launch.gpumemprof(), "export", run, "--to", "parquet", "-o", lake]
        fact, _ = launch.timed(export)
        size = sum(file.stat().st_size for file in pathlib.Path(lake).glob("*/*.parquet"))
        query, _ = launch.timed([launch.gpumemprof(), "sql", lake, "SELECT * FROM peak_by_line"])
    return [
        Row(f"a run of {events:,} events as Parquet", f"{size / events:.2f} bytes an event", "≤ 6 bytes", size <= 6 * events,
            section="more"),
        Row(f"export --to parquet of {events:,} events",
            f"{fact['seconds']:.1f} s, {fact['peak_rss_kib'] / 1024:.0f} MiB", section="more", raw={"runs": [fact]}),
        Row(f"sql over it: the peak by line, {events:,} events",
            f"{query['seconds']:.1f} s, {query['peak_rss_kib'] / 1024:.0f} MiB", section="more", raw={"runs": [query]}),
    ]


def parts(size):
    return [lambda events=events: measure(events) for events in size["lake_events"]]
