"""Runs only in the child process of `sql`: questions in SQL to runs and lakes."""
