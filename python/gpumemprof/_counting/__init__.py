"""Where figures come from: devices, the sources of counters, collectors, the host."""
