-- grew(before_run, after_run): what each line held at the peak of one run and of another, the largest growth first.
SELECT
  rank,
  device,
  line,
  SUM(CASE WHEN run = :before_run THEN size_bytes ELSE 0 END) AS before_bytes,
  SUM(CASE WHEN run = :after_run THEN size_bytes ELSE 0 END) AS after_bytes,
  SUM(CASE WHEN run = :after_run THEN size_bytes ELSE 0 END) - SUM(CASE WHEN run = :before_run THEN size_bytes ELSE 0 END) AS grown_bytes
FROM peak_by_line
WHERE run = :before_run OR run = :after_run
GROUP BY rank, device, line
ORDER BY grown_bytes DESC, device, rank, line
