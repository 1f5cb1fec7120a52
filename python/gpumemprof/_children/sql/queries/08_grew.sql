-- grew(before_run, after_run): what each line held at the peaks of two runs, the largest growth first.
SELECT
  l.rank AS rank,
  l.device AS device,
  l.line AS line,
  SUM(CASE WHEN l.run = :before_run THEN l.size_bytes ELSE 0 END) AS before_bytes,
  SUM(CASE WHEN l.run = :after_run THEN l.size_bytes ELSE 0 END) AS after_bytes,
  SUM(CASE WHEN l.run = :after_run THEN l.size_bytes ELSE 0 END)
    - SUM(CASE WHEN l.run = :before_run THEN l.size_bytes ELSE 0 END) AS grown_bytes
FROM peak_by_line AS l
WHERE l.run = :before_run OR l.run = :after_run
GROUP BY l.rank, l.device, l.line
ORDER BY grown_bytes DESC, l.device, l.rank, l.line
