-- peak_by_module: the modules of the model that held each memory's peak.
SELECT
  b.run AS run,
  b.rank AS rank,
  b.memory AS memory,
  b.device AS device,
  b.module AS module,
  b.category AS category,
  SUM(b.size_bytes) AS size_bytes,
  COUNT(*) AS blocks
FROM peak_blocks AS b
GROUP BY b.run, b.rank, b.memory, b.device, b.module, b.category
ORDER BY b.run, b.memory, SUM(b.size_bytes) DESC, b.module, b.category
