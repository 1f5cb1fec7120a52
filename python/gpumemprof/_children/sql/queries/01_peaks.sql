-- peaks: the peak of each memory of each run, and its time; a run's main memory comes first.
SELECT
  run,
  rank,
  memory,
  device,
  peak_bytes,
  peak_reserved_bytes,
  size_basis,
  peak_event,
  (peak_time_ns - start_time_ns) / 1e9 AS peak_s,
  end_bytes,
  host,
  pid
FROM ranks
ORDER BY run, is_main DESC, rank, memory
