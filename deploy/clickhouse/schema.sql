-- The tables of a lake (docs/lake.md) on a ClickHouse server, sorted by run, rank and time, and what held each peak, filled
-- as intervals come in. `rank` in intervals is that of ranks.
CREATE DATABASE IF NOT EXISTS gpumemprof;

CREATE TABLE IF NOT EXISTS gpumemprof.runs (
  run LowCardinality(String),
  schema LowCardinality(String),
  schema_version Int64,
  identity Nullable(String),
  source_path Nullable(String),
  source_kind Nullable(String),
  source_bytes Nullable(Int64),
  writer Nullable(String),
  gpumemprof_version LowCardinality(Nullable(String)),
  events Nullable(Int64),
  is_complete Nullable(Bool),
  lost_events Nullable(Int64),
  lost Nullable(String),
  score Nullable(Float64)
) ENGINE = MergeTree ORDER BY (run);

CREATE TABLE IF NOT EXISTS gpumemprof.ranks (
  run LowCardinality(String),
  memory Int64,
  device LowCardinality(Nullable(String)),
  backend LowCardinality(Nullable(String)),
  layer LowCardinality(Nullable(String)),
  size_basis LowCardinality(Nullable(String)),
  is_main Nullable(Bool),
  is_exact Nullable(Bool),
  rank Nullable(Int64),
  host LowCardinality(Nullable(String)),
  pid Nullable(Int64),
  command Nullable(String),
  python_version LowCardinality(Nullable(String)),
  events Nullable(Int64),
  intervals Nullable(Int64),
  before_bytes Nullable(Int64),
  peak_bytes Nullable(Int64),
  peak_event Nullable(Int64),
  peak_time_ns Nullable(Int64),
  peak_reserved_bytes Nullable(Int64),
  end_bytes Nullable(Int64),
  start_time_ns Nullable(Int64),
  end_time_ns Nullable(Int64),
  wall_offset_ns Nullable(Int64)
) ENGINE = MergeTree ORDER BY (run, ifNull(rank, -1), memory);

CREATE TABLE IF NOT EXISTS gpumemprof.intervals (
  run LowCardinality(String),
  memory Int64,
  rank Nullable(Int64),
  interval Int64 CODEC(Delta, ZSTD),
  birth_event Int64 CODEC(Delta, ZSTD),
  death_event Nullable(Int64),
  birth_time_ns Nullable(Int64) CODEC(Delta, ZSTD),
  death_time_ns Nullable(Int64),
  address Nullable(Int64),
  size_bytes Nullable(Int64),
  stack Int64,
  stream Nullable(Int64),
  thread Nullable(Int64),
  category LowCardinality(Nullable(String)),
  module LowCardinality(Nullable(String)),
  phase LowCardinality(Nullable(String)),
  step Nullable(Int64)
) ENGINE = MergeTree ORDER BY (run, ifNull(rank, -1), memory, ifNull(birth_time_ns, 0), interval);

CREATE TABLE IF NOT EXISTS gpumemprof.categories (
  run LowCardinality(String),
  memory Int64,
  interval Int64,
  from_event Int64,
  until_event Int64,
  category LowCardinality(Nullable(String)),
  module LowCardinality(Nullable(String)),
  phase LowCardinality(Nullable(String))
) ENGINE = MergeTree ORDER BY (run, memory, interval, from_event);

CREATE TABLE IF NOT EXISTS gpumemprof.stacks (
  run LowCardinality(String),
  stack Int64,
  depth Nullable(Int64),
  line LowCardinality(Nullable(String)),
  frames Array(String),
  folded Nullable(String)
) ENGINE = MergeTree ORDER BY (run, stack);

CREATE TABLE IF NOT EXISTS gpumemprof.samples (
  run LowCardinality(String),
  memory Int64,
  event Int64,
  time_ns Nullable(Int64),
  name LowCardinality(String),
  value_bytes Nullable(Int64)
) ENGINE = MergeTree ORDER BY (run, memory, name, event);

CREATE TABLE IF NOT EXISTS gpumemprof.steps (
  run LowCardinality(String),
  memory Int64,
  kind LowCardinality(Nullable(String)),
  name LowCardinality(Nullable(String)),
  step Nullable(Int64),
  begin_event Nullable(Int64),
  end_event Nullable(Int64),
  begin_time_ns Nullable(Int64),
  end_time_ns Nullable(Int64)
) ENGINE = MergeTree ORDER BY (run, memory, ifNull(begin_event, 0));

CREATE TABLE IF NOT EXISTS gpumemprof.slices (
  run LowCardinality(String),
  memory Int64,
  slice Nullable(Int64),
  slice_ns Int64,
  net_bytes Int64,
  rise_bytes Int64
) ENGINE = MergeTree ORDER BY (run, memory, ifNull(slice, 0));

CREATE TABLE IF NOT EXISTS gpumemprof.findings (
  run LowCardinality(String),
  finding Int64,
  kind LowCardinality(Nullable(String)),
  name LowCardinality(Nullable(String)),
  severity LowCardinality(Nullable(String)),
  title Nullable(String),
  size_bytes Nullable(Int64),
  confidence LowCardinality(Nullable(String)),
  device LowCardinality(Nullable(String)),
  fix Nullable(String),
  frames Array(String),
  evidence Nullable(String)
) ENGINE = MergeTree ORDER BY (run, finding);

-- What held each peak, by line: a few rows a memory, however many allocations it had.
CREATE TABLE IF NOT EXISTS gpumemprof.peak_lines (
  run LowCardinality(String),
  memory Int64,
  rank Nullable(Int64),
  line LowCardinality(Nullable(String)),
  category LowCardinality(Nullable(String)),
  size_bytes Int64,
  blocks Int64
) ENGINE = SummingMergeTree((size_bytes, blocks)) ORDER BY (run, memory, ifNull(rank, -1), ifNull(line, ''), ifNull(category, ''));

-- ranks, stacks and categories come first: see load.sql. A category that was another one at the peak is that one.
CREATE MATERIALIZED VIEW IF NOT EXISTS gpumemprof.peak_lines_fill TO gpumemprof.peak_lines AS
SELECT
  i.run AS run,
  i.memory AS memory,
  i.rank AS rank,
  s.line AS line,
  if(c.interval IS NULL, i.category, c.category) AS category,
  toInt64(sum(i.size_bytes)) AS size_bytes,
  toInt64(count()) AS blocks
FROM gpumemprof.intervals AS i
LEFT JOIN gpumemprof.ranks AS r ON r.run = i.run AND r.memory = i.memory
LEFT JOIN gpumemprof.stacks AS s ON s.run = i.run AND s.stack = i.stack
LEFT JOIN (
  SELECT e.run AS run, e.memory AS memory, e.interval AS interval, e.category AS category
  FROM gpumemprof.categories AS e
  JOIN gpumemprof.ranks AS p ON p.run = e.run AND p.memory = e.memory
  WHERE e.from_event <= p.peak_event AND p.peak_event < e.until_event
) AS c ON c.run = i.run AND c.memory = i.memory AND c.interval = i.interval
WHERE i.birth_event <= r.peak_event AND (i.death_event IS NULL OR i.death_event > r.peak_event)
GROUP BY run, memory, rank, line, category
SETTINGS join_use_nulls = 1;
