-- cross_rank_peak(runs): the most that all main memories of the runs LIKE that held at one time, and when.
-- Exact without sorting every event: in a million slices of time it is known what was held at the end of each, and that
-- no more than that and its births was held within it. Only slices that could have the peak are sorted.
WITH clocks AS (
  SELECT run, memory, COALESCE(wall_offset_ns, 0) AS offset_ns
  FROM ranks
  WHERE is_main AND run LIKE :in_runs AND (peak_time_ns IS NOT NULL OR peak_event = 0)
),
span AS (
  SELECT MIN(b.birth_time_ns + k.offset_ns) AS first_ns,
    (MAX(b.birth_time_ns + k.offset_ns) - MIN(b.birth_time_ns + k.offset_ns)) / 1048576.0 + 1.0 AS slice_ns
  FROM intervals AS b
  JOIN clocks AS k ON k.run = b.run AND k.memory = b.memory
),
slices AS (
  SELECT c.slice AS slice, SUM(c.net_bytes) AS net_bytes, SUM(c.born_bytes) AS born_bytes
  FROM (
    SELECT COALESCE(CAST((b.birth_time_ns + k.offset_ns - p.first_ns) / p.slice_ns AS BIGINT), -1) AS slice,
      SUM(b.size_bytes) AS net_bytes, SUM(b.size_bytes) AS born_bytes
    FROM intervals AS b
    JOIN clocks AS k ON k.run = b.run AND k.memory = b.memory
    CROSS JOIN span AS p
    GROUP BY COALESCE(CAST((b.birth_time_ns + k.offset_ns - p.first_ns) / p.slice_ns AS BIGINT), -1)
    UNION ALL
    SELECT CAST((d.death_time_ns + k.offset_ns - p.first_ns) / p.slice_ns AS BIGINT) AS slice,
      -SUM(d.size_bytes) AS net_bytes, 0 AS born_bytes
    FROM intervals AS d
    JOIN clocks AS k ON k.run = d.run AND k.memory = d.memory
    CROSS JOIN span AS p
    WHERE d.death_event IS NOT NULL
    GROUP BY CAST((d.death_time_ns + k.offset_ns - p.first_ns) / p.slice_ns AS BIGINT)
  ) AS c
  GROUP BY c.slice
),
levels_of_slices AS (
  SELECT s.slice AS slice, s.net_bytes AS net_bytes, s.born_bytes AS born_bytes,
    SUM(s.net_bytes) OVER (ORDER BY s.slice ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS end_bytes
  FROM slices AS s
),
highest AS (
  SELECT l.slice AS slice, l.end_bytes - l.net_bytes AS begin_bytes
  FROM levels_of_slices AS l
  CROSS JOIN (SELECT MAX(m.end_bytes) AS known_bytes FROM levels_of_slices AS m) AS n
  WHERE l.end_bytes - l.net_bytes + l.born_bytes >= n.known_bytes
),
moments AS (
  SELECT e.time_ns AS time_ns,
    e.begin_bytes + SUM(e.added_bytes) OVER (
      PARTITION BY e.slice ORDER BY e.time_ns, e.run, e.memory, e.event ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS live_bytes
  FROM (
    SELECT h.slice AS slice, h.begin_bytes AS begin_bytes, b.run AS run, b.memory AS memory, b.birth_event AS event,
      b.birth_time_ns + k.offset_ns AS time_ns, b.size_bytes AS added_bytes
    FROM intervals AS b
    JOIN clocks AS k ON k.run = b.run AND k.memory = b.memory
    CROSS JOIN span AS p
    JOIN highest AS h ON h.slice = COALESCE(CAST((b.birth_time_ns + k.offset_ns - p.first_ns) / p.slice_ns AS BIGINT), -1)
    UNION ALL
    SELECT h.slice AS slice, h.begin_bytes AS begin_bytes, d.run AS run, d.memory AS memory, d.death_event AS event,
      d.death_time_ns + k.offset_ns AS time_ns, -d.size_bytes AS added_bytes
    FROM intervals AS d
    JOIN clocks AS k ON k.run = d.run AND k.memory = d.memory
    CROSS JOIN span AS p
    JOIN highest AS h ON h.slice = CAST((d.death_time_ns + k.offset_ns - p.first_ns) / p.slice_ns AS BIGINT)
    WHERE d.death_event IS NOT NULL
  ) AS e
)
SELECT m.live_bytes AS peak_bytes, MIN(m.time_ns) AS time_ns, (SELECT COUNT(*) FROM clocks) AS memories
FROM moments AS m
WHERE m.live_bytes = (SELECT MAX(n.live_bytes) FROM moments AS n)
GROUP BY m.live_bytes
