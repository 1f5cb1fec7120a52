"""What measurements mean: analyses of series, calls, ranks; traces and estimates through the core."""
