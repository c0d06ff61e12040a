"""Progress of a run: events made into rows, lines and a live table."""
