"""Parquet files as Spark reads them: their contents, and how it maps to a table's columns."""
