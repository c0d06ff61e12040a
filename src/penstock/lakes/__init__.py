"""DuckLake on Spark: a catalog in SQL, and Parquet files."""
