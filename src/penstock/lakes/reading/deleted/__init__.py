"""Rows that are deleted: what delete files hold, as positions, as masks and as DataFrames."""
