"""DuckLake on Spark."""
