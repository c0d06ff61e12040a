"""Inputs of a query: tables at one snapshot, files, seeds, values of the slice."""
