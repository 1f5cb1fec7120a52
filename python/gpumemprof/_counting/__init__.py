"""Sources of figures: devices, counters, collectors, the host."""
