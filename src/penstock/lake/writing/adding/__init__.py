"""Parquet files written elsewhere: found, fitted to a table's columns, described for a commit."""
