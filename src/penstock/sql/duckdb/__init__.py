"""DuckDB's SQL translated to Spark's, or refused."""
