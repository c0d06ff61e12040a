"""Parquet files as Spark reads them: what they hold, and which columns of a table that is."""
