"""Parquet files of other tools: listed, matched to a table's columns, described for a commit."""
