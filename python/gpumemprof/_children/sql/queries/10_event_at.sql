-- event_at(run, memory, time_ns): the last event at or before that time, for live_at.
SELECT MAX(c.event) AS event
FROM (
  SELECT birth_event AS event
  FROM intervals
  WHERE run = :in_run AND memory = :in_memory AND birth_time_ns <= :at_time_ns
  UNION ALL
  SELECT death_event AS event
  FROM intervals
  WHERE run = :in_run AND memory = :in_memory AND death_time_ns <= :at_time_ns
) AS c
