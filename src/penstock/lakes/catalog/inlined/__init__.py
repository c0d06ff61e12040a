"""Rows and deletes that the catalog itself holds."""
