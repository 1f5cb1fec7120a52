"""One module a kind of measurement; each has measure(size) and gives back a list of rows."""
