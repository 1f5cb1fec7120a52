-- cross_rank_peak(runs): the most that all ranks of the matching runs held together at one time, and when; it covers memories like the main one. What a process still held when it exited counts up to its last event, or until `run` saw that it had been killed.
-- Exact without sorting every event: of every slice of time it is known what was held at its end, and how far it can have
-- gone meanwhile. Only events of slices that could have the peak are looked at.
WITH clocks AS (
  SELECT r.run AS run, r.memory AS memory, COALESCE(r.wall_offset_ns, 0) AS offset_ns, r.end_time_ns AS end_time_ns, r.end_bytes AS end_bytes,
    r.events AS events
  FROM ranks AS r
  JOIN (SELECT DISTINCT run, backend, layer FROM ranks WHERE is_main) AS t ON t.run = r.run AND t.backend = r.backend AND t.layer = r.layer
  WHERE r.run LIKE :in_runs AND (r.peak_time_ns IS NOT NULL OR r.peak_event = 0)
),
spans AS (
  SELECT MAX(s.slice_ns) AS slice_ns, MIN(s.slice * s.slice_ns) AS first_ns
  FROM slices AS s
  JOIN clocks AS k ON k.run = s.run AND k.memory = s.memory
),
-- Slices of the longest length; base_ns is where one of them begins, so that numbers from it are exact.
grid AS (
  SELECT p.slice_ns AS slice_ns, CAST(COALESCE(FLOOR(p.first_ns / p.slice_ns), 0) AS BIGINT) * p.slice_ns AS base_ns
  FROM spans AS p
),
parts AS (
  SELECT s.run AS run, s.memory AS memory,
    CAST(COALESCE(FLOOR((s.slice * s.slice_ns - g.base_ns) / g.slice_ns), -1) AS BIGINT) AS slice,
    SUM(s.net_bytes) AS net_bytes,
    CASE WHEN COUNT(*) = 1 THEN MAX(s.rise_bytes)
      ELSE SUM(CASE WHEN s.net_bytes > 0 THEN s.net_bytes ELSE 0 END) + MAX(s.rise_bytes) END AS rise_bytes
  FROM slices AS s
  JOIN clocks AS k ON k.run = s.run AND k.memory = s.memory
  CROSS JOIN grid AS g
  GROUP BY s.run, s.memory, CAST(COALESCE(FLOOR((s.slice * s.slice_ns - g.base_ns) / g.slice_ns), -1) AS BIGINT)
),
-- What is gone with its process.
exits AS (
  SELECT CAST(FLOOR((k.end_time_ns + k.offset_ns - g.base_ns) / g.slice_ns) AS BIGINT) AS slice, -k.end_bytes AS net_bytes, 0 AS rise_bytes
  FROM clocks AS k
  CROSS JOIN grid AS g
  WHERE k.end_time_ns IS NOT NULL
),
sums AS (
  SELECT a.slice AS slice, SUM(a.net_bytes) AS net_bytes, SUM(a.rise_bytes) AS rise_bytes
  FROM (SELECT slice, net_bytes, rise_bytes FROM parts UNION ALL SELECT slice, net_bytes, rise_bytes FROM exits) AS a
  GROUP BY a.slice
),
ends AS (
  SELECT s.slice AS slice, s.net_bytes AS net_bytes, s.rise_bytes AS rise_bytes,
    SUM(s.net_bytes) OVER (ORDER BY s.slice ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS end_bytes
  FROM sums AS s
),
highest AS (
  SELECT e.slice AS slice, CAST(e.end_bytes - e.net_bytes AS BIGINT) AS begin_bytes
  FROM ends AS e
  CROSS JOIN (SELECT MAX(n.end_bytes) AS known_bytes FROM ends AS n) AS m
  WHERE e.end_bytes - e.net_bytes + e.rise_bytes >= m.known_bytes
),
-- The same grid on the own clock of each memory.
own AS (
  SELECT k.run AS run, k.memory AS memory, k.offset_ns AS offset_ns, g.base_ns - k.offset_ns AS base_ns, g.slice_ns AS slice_ns
  FROM clocks AS k
  CROSS JOIN grid AS g
),
bounds AS (
  SELECT MIN(o.base_ns + h.slice * o.slice_ns) AS from_ns, MAX(o.base_ns + (h.slice + 1) * o.slice_ns) AS to_ns
  FROM highest AS h
  CROSS JOIN own AS o
  WHERE h.slice >= 0
),
births AS (
  SELECT i.run AS run, i.memory AS memory, i.birth_event AS event, i.birth_time_ns AS time_ns, i.size_bytes AS added_bytes
  FROM intervals AS i
  WHERE i.birth_time_ns IS NULL
    OR (i.birth_time_ns >= (SELECT from_ns FROM bounds) AND i.birth_time_ns < (SELECT to_ns FROM bounds))
),
deaths AS (
  SELECT i.run AS run, i.memory AS memory, i.death_event AS event, i.death_time_ns AS time_ns, -i.size_bytes AS added_bytes
  FROM intervals AS i
  WHERE i.death_time_ns >= (SELECT from_ns FROM bounds) AND i.death_time_ns < (SELECT to_ns FROM bounds)
  UNION ALL
  SELECT k.run AS run, k.memory AS memory, k.events + 1 AS event, k.end_time_ns AS time_ns, -k.end_bytes AS added_bytes
  FROM clocks AS k
  WHERE k.end_time_ns >= (SELECT from_ns FROM bounds) AND k.end_time_ns < (SELECT to_ns FROM bounds)
),
moments AS (
  SELECT c.time_ns AS time_ns,
    c.begin_bytes + SUM(c.added_bytes) OVER (
      PARTITION BY c.slice ORDER BY c.time_ns, c.run, c.memory, c.event ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS live_bytes
  FROM (
    SELECT h.slice AS slice, h.begin_bytes AS begin_bytes, e.run AS run, e.memory AS memory, e.event AS event,
      e.time_ns + o.offset_ns AS time_ns, e.added_bytes AS added_bytes
    FROM (SELECT * FROM births UNION ALL SELECT * FROM deaths) AS e
    JOIN own AS o ON o.run = e.run AND o.memory = e.memory
    JOIN highest AS h ON h.slice = CAST(COALESCE(FLOOR((e.time_ns - o.base_ns) / o.slice_ns), -1) AS BIGINT)
  ) AS c
)
SELECT m.live_bytes AS peak_bytes, m.time_ns AS time_ns, (SELECT COUNT(*) FROM clocks) AS memories
FROM moments AS m
ORDER BY m.live_bytes DESC, COALESCE(m.time_ns, 0)
LIMIT 1
