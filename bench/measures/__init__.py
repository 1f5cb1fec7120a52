"""One module a kind of measurement: measure(size) gives back a list of rows, or parts(size) functions that each do;
where one raises launch.Failed the others still count."""
