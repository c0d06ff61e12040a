"""What a query reads: tables at one snapshot, files, seeds, values of the slice."""
