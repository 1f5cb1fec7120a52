-- A lake into the tables of schema.sql; `lake` is a folder below the server's user_files, or put s3(…) in place of file(…).
SET join_use_nulls = 1;
SET use_structure_from_insertion_table_in_table_functions = 0;
INSERT INTO gpumemprof.runs SELECT * FROM file('lake/*/runs.parquet', Parquet);
INSERT INTO gpumemprof.ranks SELECT * FROM file('lake/*/ranks.parquet', Parquet);
INSERT INTO gpumemprof.categories SELECT * FROM file('lake/*/categories.parquet', Parquet);
INSERT INTO gpumemprof.stacks SELECT * FROM file('lake/*/stacks.parquet', Parquet);
INSERT INTO gpumemprof.samples SELECT * FROM file('lake/*/samples.parquet', Parquet);
INSERT INTO gpumemprof.steps SELECT * FROM file('lake/*/steps.parquet', Parquet);
INSERT INTO gpumemprof.slices SELECT * FROM file('lake/*/slices.parquet', Parquet);
INSERT INTO gpumemprof.findings SELECT * FROM file('lake/*/findings.parquet', Parquet);
-- Last: the peaks are made of it and of what is there by then.
INSERT INTO gpumemprof.intervals (run, memory, rank, interval, birth_event, death_event, birth_time_ns, death_time_ns, address, size_bytes, stack, stream, thread, category, module, phase, step)
SELECT i.run, i.memory, r.rank, i.interval, i.birth_event, i.death_event, i.birth_time_ns, i.death_time_ns, i.address, i.size_bytes, i.stack, i.stream, i.thread, i.category, i.module, i.phase, i.step
FROM file('lake/*/intervals.*.parquet', Parquet) AS i
LEFT JOIN gpumemprof.ranks AS r ON r.run = i.run AND r.memory = i.memory;
