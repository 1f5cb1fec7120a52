-- flame(run, memory): the stacks that held the memory's peak, folded for any flame graph.
SELECT s.folded AS folded, SUM(b.size_bytes) AS size_bytes
FROM peak_blocks AS b
JOIN stacks AS s ON s.run = b.run AND s.stack = b.stack
WHERE b.run = :in_run AND b.memory = :in_memory
GROUP BY s.folded
ORDER BY SUM(b.size_bytes) DESC, s.folded
