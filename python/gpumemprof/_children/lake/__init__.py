"""Runs only in the child process of `export --to parquet` and `--to sqlite`, and of `sql`: a run as tables."""
