"""One module a kind of measurement. Its parts(size) are functions that each give back a list of
rows; where one raises launch.Failed the others still count."""
