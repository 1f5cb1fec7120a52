"""Runs only in the child process of `runs`: a history of runs in a folder or an S3-like store."""
