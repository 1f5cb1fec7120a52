-- peak_by_category: what each memory's peak consisted of.
SELECT run, rank, memory, device, category, SUM(size_bytes) AS size_bytes, COUNT(*) AS blocks
FROM peak_blocks
GROUP BY run, rank, memory, device, category
ORDER BY run, memory, size_bytes DESC, category
