"""Rows and deletes that the catalog itself holds, as values: read, written, counted; no Spark."""
