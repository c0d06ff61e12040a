"""Reading tables: scans, the change feed, deleted rows, Parquet files and their conversions."""
