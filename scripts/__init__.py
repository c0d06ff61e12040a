"""Programs for those who work on Penstock."""
