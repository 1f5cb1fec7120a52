-- peak_by_category: what each memory's peak consisted of.
SELECT
  b.run AS run,
  b.rank AS rank,
  b.memory AS memory,
  b.device AS device,
  b.category AS category,
  SUM(b.size_bytes) AS size_bytes,
  COUNT(*) AS blocks
FROM peak_blocks AS b
GROUP BY b.run, b.rank, b.memory, b.device, b.category
ORDER BY b.run, b.memory, SUM(b.size_bytes) DESC, b.category
