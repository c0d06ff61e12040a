"""DuckDB's SQL, as views and macros of a lake hold it, as Spark's."""
