-- levels(run, memory): live bytes after each event that changed them.
SELECT
  t.event AS event,
  SUM(t.added_bytes) OVER (ORDER BY t.event ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS live_bytes
FROM (
  SELECT c.event AS event, SUM(c.added_bytes) AS added_bytes
  FROM (
    SELECT birth_event AS event, size_bytes AS added_bytes
    FROM intervals
    WHERE run = :in_run AND memory = :in_memory
    UNION ALL
    SELECT death_event AS event, -size_bytes AS added_bytes
    FROM intervals
    WHERE run = :in_run AND memory = :in_memory AND death_event IS NOT NULL
  ) AS c
  GROUP BY c.event
) AS t
ORDER BY t.event
