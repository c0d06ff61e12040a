"""The format as values: types, schemas, statistics, files, changes and conflicts; no Spark."""
