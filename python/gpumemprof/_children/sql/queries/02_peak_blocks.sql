-- peak_blocks: every allocation that was live at the peak of its memory, with its category at that time.
SELECT
  i.run AS run,
  i.memory AS memory,
  r.rank AS rank,
  r.device AS device,
  i.interval AS interval,
  i.size_bytes AS size_bytes,
  CASE WHEN c.interval IS NULL THEN i.category ELSE c.category END AS category,
  CASE WHEN c.interval IS NULL THEN i.module ELSE c.module END AS module,
  CASE WHEN c.interval IS NULL THEN i.phase ELSE c.phase END AS phase,
  i.stack AS stack,
  i.stream AS stream,
  i.thread AS thread,
  i.step AS step,
  i.birth_event AS birth_event,
  i.death_event AS death_event,
  i.address AS address
FROM intervals AS i
JOIN ranks AS r ON r.run = i.run AND r.memory = i.memory
LEFT JOIN (
  -- What was something else by then is what it was at that moment.
  SELECT e.run AS run, e.memory AS memory, e.interval AS interval, e.category AS category, e.module AS module, e.phase AS phase
  FROM categories AS e
  JOIN ranks AS p ON p.run = e.run AND p.memory = e.memory
  WHERE e.from_event <= p.peak_event AND p.peak_event < e.until_event
) AS c ON c.run = i.run AND c.memory = i.memory AND c.interval = i.interval
WHERE i.birth_event <= r.peak_event AND (i.death_event IS NULL OR i.death_event > r.peak_event)
