-- peak_by_module: the modules of the model that held each memory's peak.
SELECT run, rank, memory, device, module, category, SUM(size_bytes) AS size_bytes, COUNT(*) AS blocks
FROM peak_blocks
GROUP BY run, rank, memory, device, module, category
ORDER BY run, memory, size_bytes DESC, module, category
