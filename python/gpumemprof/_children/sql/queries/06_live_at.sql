-- live_at(run, memory, event): every allocation that was live after that event.
SELECT
  i.interval AS interval,
  i.size_bytes AS size_bytes,
  CASE WHEN c.interval IS NULL THEN i.category ELSE c.category END AS category,
  CASE WHEN c.interval IS NULL THEN i.module ELSE c.module END AS module,
  s.line AS line,
  i.stack AS stack,
  i.step AS step,
  i.birth_event AS birth_event,
  i.death_event AS death_event
FROM intervals AS i
LEFT JOIN (
  SELECT interval, category, module
  FROM categories
  WHERE run = :in_run AND memory = :in_memory AND from_event <= :at_event AND :at_event < until_event
) AS c ON c.interval = i.interval
LEFT JOIN stacks AS s ON s.run = i.run AND s.stack = i.stack
WHERE i.run = :in_run AND i.memory = :in_memory
  AND i.birth_event <= :at_event AND (i.death_event IS NULL OR i.death_event > :at_event)
ORDER BY i.size_bytes DESC, i.interval
