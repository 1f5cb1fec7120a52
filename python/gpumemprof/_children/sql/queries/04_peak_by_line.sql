-- peak_by_line: the lines of code that held each memory's peak, by rank.
SELECT
  b.run AS run,
  b.rank AS rank,
  b.memory AS memory,
  b.device AS device,
  s.line AS line,
  SUM(b.size_bytes) AS size_bytes,
  COUNT(*) AS blocks
FROM peak_blocks AS b
LEFT JOIN stacks AS s ON s.run = b.run AND s.stack = b.stack
GROUP BY b.run, b.rank, b.memory, b.device, s.line
ORDER BY b.run, b.memory, SUM(b.size_bytes) DESC, s.line
