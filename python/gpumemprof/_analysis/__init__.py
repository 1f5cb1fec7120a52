"""Analyses of measurements: series, calls, ranks; traces and estimates through the core."""
